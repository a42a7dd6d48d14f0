"""What is right: the cache and the clip joined along time, with zeros around them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def reference(inputs: Mapping[str, Array], scalars: Mapping[str, float]) -> dict[str, Array]:
    """``x`` [n, c, t, h, w] and ``cache`` [n, c, tc, h, w] -> ``y`` [n, c, t + dl, h + ht + hb, w + wl + wr]."""
    x, cache = inputs["x"], inputs["cache"]
    wl, wr, ht, hb, dl = (int(scalars[name]) for name in ("wl", "wr", "ht", "hb", "dl"))
    n, c, t, h, w = x.shape
    y = np.zeros((n, c, t + dl, h + ht + hb, w + wl + wr))
    inner = y[:, :, :, ht : ht + h, wl : wl + w]
    inner[:, :, dl - cache.shape[2] : dl] = cache
    inner[:, :, dl:] = x
    return {"y": y}
