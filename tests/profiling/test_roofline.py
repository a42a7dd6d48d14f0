from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kda_tui.profiling.roofline import Ceiling, Point, curve, svg, usable

H200 = Ceiling("H200, measured", 4.2e12, 60e12)


def test_the_roof_bends_at_the_ridge() -> None:
    assert H200.attainable(1.0) == pytest.approx(4.2e12)
    assert H200.attainable(1e3) == 60e12
    assert (H200.ridge, 60e12) in curve(H200, 0.1, 1e3)


def test_share_is_of_the_attainable() -> None:
    streaming = Point("c1", flops=1e6, bytes=4.2e6, seconds=2e-6)
    assert streaming.share(H200) == pytest.approx(0.5)


@given(
    st.lists(
        st.builds(Point, st.text(max_size=8), st.floats(), st.floats(), st.floats(), st.booleans()),
        max_size=5,
    )
)
def test_any_points_give_a_drawable_svg(points: list[Point]) -> None:
    kept = usable(points)
    kept = [p for p in kept if 1e-12 < p.intensity < 1e12 and 1 < p.rate < 1e20]
    text = "".join(c for c in svg(H200, kept) if c.isprintable() or c == "\n")
    ET.fromstring(text.encode("utf-8", "replace"))
    assert all(math.isfinite(p.rate) for p in kept)
