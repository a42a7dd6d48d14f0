"""The roofline: attainable FLOP/s over arithmetic intensity, with candidates as points.

Attainable = min(peak FLOP/s, intensity x bandwidth) (Williams, Waterman, Patterson: Roofline, 2009).
Ceilings are measured ones where the device has them; a point may sit on contract bytes (what must be
moved) or on measured traffic (what was moved).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from kda_tui.text import UserError

_Scale = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Ceiling:
    """``bandwidth`` in B/s, ``flops`` in FLOP/s; ``name`` says of what device and how known."""

    name: str
    bandwidth: float
    flops: float

    def attainable(self, intensity: float) -> float:
        return min(self.flops, intensity * self.bandwidth)

    @property
    def ridge(self) -> float:
        """FLOP per byte at which arithmetic becomes the limit."""
        return self.flops / self.bandwidth


@dataclass(frozen=True, slots=True)
class Point:
    label: str
    flops: float  # per call
    bytes: float  # per call
    seconds: float
    measured: bool = False  # bytes are measured traffic, not the contract's

    @property
    def intensity(self) -> float:
        return self.flops / self.bytes

    @property
    def rate(self) -> float:
        return self.flops / self.seconds

    def share(self, ceiling: Ceiling) -> float:
        """Achieved over attainable FLOP/s at this intensity."""
        return self.rate / ceiling.attainable(self.intensity)


def usable(points: Sequence[Point]) -> list[Point]:
    """Points that can be drawn: all of flops, bytes and seconds positive and finite."""
    return [p for p in points if all(math.isfinite(v) and v > 0 for v in (p.flops, p.bytes, p.seconds))]


def curve(ceiling: Ceiling, low: float, high: float, steps: int = 60) -> list[tuple[float, float]]:
    """The roof between two intensities, log spaced, the ridge included."""
    if not 0 < low < high:
        raise UserError("roofline: the intensity range must be positive and rising")
    xs = [low * (high / low) ** (i / (steps - 1)) for i in range(steps)]
    if low < ceiling.ridge < high:
        xs = sorted([*xs, ceiling.ridge])
    return [(x, ceiling.attainable(x)) for x in xs]


def bounds(ceiling: Ceiling, points: Sequence[Point]) -> tuple[float, float, float, float]:
    """Intensity and rate range that hold the ridge and every point with a margin."""
    xs = [ceiling.ridge, *(p.intensity for p in points)]
    low, high = min(xs) / 4, max(xs) * 4
    ys = [ceiling.attainable(low), ceiling.flops, *(p.rate for p in points)]
    return low, high, min(ys) / 2, max(ys) * 2


def svg(ceiling: Ceiling, points: Sequence[Point], width: int = 760, height: int = 460) -> str:
    """The roofline as a self-contained SVG."""
    points = usable(points)
    low, high, bottom, top = bounds(ceiling, points)
    left, right, upper, lower = 80, width - 24, 40, height - 56

    def x(value: float) -> float:
        return left + (right - left) * math.log(value / low) / math.log(high / low)

    def y(value: float) -> float:
        return lower - (lower - upper) * math.log(value / bottom) / math.log(top / bottom)

    roof = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in curve(ceiling, low, high))
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="monospace" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="{left}" y="22">{escape(ceiling.name)}: {ceiling.bandwidth / 1e9:,.0f} GB/s, {ceiling.flops / 1e12:,.1f} TFLOP/s</text>',
        *_grid(x, y, (low, high, bottom, top), (left, right, upper, lower)),
        f'<polyline points="{roof}" fill="none" stroke="#222" stroke-width="2"/>',
    ]
    for point in points:
        px, py = x(point.intensity), y(point.rate)
        fill = "none" if point.measured else "#06c"
        out.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="5" fill="{fill}" stroke="#06c"/>')
        label = f"{point.label} {point.share(ceiling):.0%}{' (measured bytes)' if point.measured else ''}"
        out.append(f'<text x="{px + 9:.1f}" y="{py + 4:.1f}">{escape(label)}</text>')
    out.append(
        f'<text x="{(left + right) / 2:.0f}" y="{height - 12}" text-anchor="middle">FLOP per byte</text></svg>'
    )
    return "\n".join(out)


def _grid(
    x: _Scale, y: _Scale, data: tuple[float, float, float, float], frame: tuple[int, int, int, int]
) -> list[str]:
    low, high, bottom, top = data
    left, right, upper, lower = frame
    out = []
    for e in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1):
        at = x(10.0**e)
        out.append(f'<line x1="{at:.1f}" y1="{upper}" x2="{at:.1f}" y2="{lower}" stroke="#ddd"/>')
        out.append(f'<text x="{at:.1f}" y="{lower + 18}" text-anchor="middle">{10.0**e:g}</text>')
    for e in range(math.ceil(math.log10(bottom)), math.floor(math.log10(top)) + 1):
        at = y(10.0**e)
        out.append(f'<line x1="{left}" y1="{at:.1f}" x2="{right}" y2="{at:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{_rate(10.0**e)}</text>')
    return out


def _rate(value: float) -> str:
    for scale, name in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= scale:
            return f"{value / scale:g} {name}F/s"
    return f"{value:g} F/s"
