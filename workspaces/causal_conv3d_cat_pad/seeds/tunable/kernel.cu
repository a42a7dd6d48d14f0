// y = zero-pad(concat over time (cache, x)) with aligned vector stores. The output is one flat array cut
// into packs of VEC elements, so that every store is aligned although the rows are not. A pack's origin is
// found by division once; from element to element the position only counts up.
//
//   THREADS        threads a block
//   VEC            bfloat16 elements a store (8 is 16 bytes)
//   BLOCKS_PER_SM  how many blocks a multiprocessor gets; they stride over the output (launch.toml)

#ifndef THREADS
#define THREADS 256
#endif
#ifndef VEC
#define VEC 1
#endif

// Elements are only copied, so their type does not matter: 16 bits, and zero is all bits clear.
using Element = unsigned short;

struct alignas(2 * VEC) Pack {
    Element v[VEC];
};

struct Geometry {
    unsigned t, h, w, tc;            // the clip, and planes in the cache
    unsigned wl, ht, zeros;          // padding on the left and on top, leading planes of zeros
    unsigned width, height, depth;   // of the output
};

// A position in the output, and the row of input under it (nullptr: padding all along).
struct Cursor {
    unsigned column, line, plane, image;
    const Element* row;
};

__device__ __forceinline__ const Element* find_row(const Geometry& g, const Cursor& at, const Element* x,
                                                   const Element* cache)
{
    const unsigned line = at.line - g.ht, plane = at.plane - g.zeros;
    if (at.plane < g.zeros || at.line < g.ht || line >= g.h)
        return nullptr;
    if (plane < g.tc)
        return cache + (((size_t)at.image * g.tc + plane) * g.h + line) * g.w;
    return x + (((size_t)at.image * g.t + plane - g.tc) * g.h + line) * g.w;
}

__device__ __forceinline__ Cursor locate(const Geometry& g, unsigned i, const Element* x, const Element* cache)
{
    Cursor at;
    const unsigned lines = i / g.width;
    const unsigned planes = lines / g.height;
    at.column = i - lines * g.width;
    at.line = lines - planes * g.height;
    at.image = planes / g.depth;
    at.plane = planes - at.image * g.depth;
    at.row = find_row(g, at, x, cache);
    return at;
}

__device__ __forceinline__ void next_line(const Geometry& g, Cursor& at, const Element* x, const Element* cache)
{
    at.column = 0;
    if (++at.line == g.height) {
        at.line = 0;
        if (++at.plane == g.depth) {
            at.plane = 0;
            ++at.image;
        }
    }
    at.row = find_row(g, at, x, cache);
}

__device__ __forceinline__ Element take(const Geometry& g, const Cursor& at)
{
    const unsigned column = at.column - g.wl;   // wraps to a large number left of the row
    return at.row != nullptr && column < g.w ? at.row[column] : (Element)0;
}

extern "C" __global__ void __launch_bounds__(THREADS)
cat_pad(const Element* __restrict__ x, const Element* __restrict__ cache, Element* __restrict__ y,
        int n, int c, int t, int h, int w, int tc, int wl, int wr, int ht, int hb, int dl)
{
    Geometry g;
    g.t = t, g.h = h, g.w = w, g.tc = tc;
    g.wl = wl, g.ht = ht, g.zeros = dl - tc;
    g.width = w + wl + wr, g.height = h + ht + hb, g.depth = t + dl;
    const unsigned total = (unsigned)n * c * g.depth * g.height * g.width;
    const unsigned packs = total / VEC;
    const unsigned first = blockIdx.x * THREADS + threadIdx.x;
    const unsigned step = gridDim.x * THREADS;

    for (unsigned p = first; p < packs; p += step) {
        Cursor at = locate(g, p * VEC, x, cache);
        Pack pack;
#pragma unroll
        for (int k = 0; k < VEC; ++k) {
            if (at.column == g.width)
                next_line(g, at, x, cache);
            pack.v[k] = take(g, at);
            ++at.column;
        }
        reinterpret_cast<Pack*>(y)[p] = pack;
    }
    // Fewer than VEC elements are left; the first threads take one each.
    if (first < total - packs * VEC) {
        const unsigned i = packs * VEC + first;
        y[i] = take(g, locate(g, i, x, cache));
    }
}
