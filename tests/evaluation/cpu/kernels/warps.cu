__global__ void shuffles(const int* in, int* out) {
    const int t = threadIdx.x, v = in[t];
    out[t] = __shfl_sync(0xffffffff, v, 5);
    out[t + 64] = __shfl_xor_sync(0xffffffff, v, 3);
    out[t + 128] = __shfl_down_sync(0xffffffff, v, 4);
    out[t + 192] = __shfl_up_sync(0xffffffff, v, 4);
    out[t + 256] = __shfl_sync(0xffffffff, v, 3, 8);
    out[t + 320] = __shfl_down_sync(0xffffffff, v, 2, 8);
    out[t + 384] = __shfl_up_sync(0xffffffff, v, 2, 8);
    out[t + 448] = __shfl_xor_sync(0xffffffff, v, 12, 8);
}

__global__ void shuffle_types(double* d, long long* l, float* f) {
    const int t = threadIdx.x;
    d[t] = __shfl_xor_sync(~0u, d[t], 1);
    l[t] = __shfl_down_sync(~0u, l[t], 1);
    f[t] = __shfl_up_sync(~0u, f[t], 1);
}

__global__ void votes(unsigned* out) {
    const int t = threadIdx.x;
    const unsigned odd = __ballot_sync(0xffffffff, t & 1);
    const int any = __any_sync(0xffffffff, t == 7), all = __all_sync(0xffffffff, t < 32);
    const unsigned same = __match_any_sync(0xffffffff, t / 8);
    int agree, differ;
    const unsigned equal = __match_all_sync(0xffffffff, 42, &agree), not_equal = __match_all_sync(0xffffffff, t, &differ);
    out[t] = odd;
    out[t + 32] = any * 2 + all;
    out[t + 64] = same;
    out[t + 96] = (equal == 0xffffffff && agree && !differ && not_equal == 0) ? __activemask() : 0;
}

__global__ void reductions(int* out) {
    const int t = threadIdx.x;
    const int v = t - 10;
    out[0 * 32 + t] = __reduce_add_sync(0xffffffff, v);
    out[1 * 32 + t] = __reduce_min_sync(0xffffffff, v);
    out[2 * 32 + t] = __reduce_max_sync(0xffffffff, v);
    out[3 * 32 + t] = (int)__reduce_max_sync(0xffffffff, (unsigned)v);
    out[4 * 32 + t] = (int)__reduce_and_sync(0xffffffff, 0xf0u | t);
    out[5 * 32 + t] = (int)__reduce_or_sync(0xffffffff, 1u << t);
    out[6 * 32 + t] = (int)__reduce_xor_sync(0xffffffff, (unsigned)t);
    out[7 * 32 + t] = (int)__reduce_min_sync(0xffffffff, (unsigned)(t + 3));
}

__global__ void halves_apart(int* out) {  // the two halves of a warp do different numbers of collectives
    const int t = threadIdx.x;
    int v = t;
    if (t < 16) {
        for (int i = 1; i < 16; i *= 2) v += __shfl_xor_sync(0x0000ffff, v, i);
    } else {
        v = __shfl_sync(0xffff0000, v, 20);
    }
    __syncwarp();
    out[t] = v + __shfl_sync(0xffffffff, v, 31);
}

__global__ void short_warp(int* out) {  // 20 threads; the mask names only them
    const unsigned mask = (1u << blockDim.x) - 1;
    out[threadIdx.x] = (int)__reduce_add_sync(mask, threadIdx.x) + __popc(__ballot_sync(mask, 1));
}

__global__ void left_early(unsigned* out) {
    if (threadIdx.x >= 8) return;
    out[threadIdx.x] = __ballot_sync(0xffffffff, 1);
}

__global__ void absent_source(unsigned* out) {
    if (threadIdx.x < 4) out[threadIdx.x] = __shfl_sync(0xf, threadIdx.x, 9);
}

__global__ void mixed(float* out, int rounds) {  // many collectives between block barriers
    __shared__ float room[32];
    float v = threadIdx.x;
    for (int k = 0; k < rounds; k++) {
        for (int o = 16; o; o /= 2) v += __shfl_xor_sync(~0u, v, o);
        if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = v;
        __syncthreads();
        v = room[(threadIdx.x / 32 + 1) % (blockDim.x / 32)] * 0.001f + threadIdx.x;
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}

__global__ void deadlock(int* out) {
    if (threadIdx.x < 16) __syncthreads();
    else __syncwarp();
    out[threadIdx.x] = 1;
}

__global__ void outside_mask(int* out) { out[threadIdx.x] = __shfl_sync(0x1, threadIdx.x, 0); }
