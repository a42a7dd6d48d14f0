"""What is right: RMS normalisation of each row, in float64."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def reference(inputs: Mapping[str, Array], scalars: Mapping[str, float]) -> dict[str, Array]:
    """``x`` [rows, hidden], ``weight`` [hidden] and the scalar ``eps`` -> ``y`` [rows, hidden]."""
    x = inputs["x"].astype(np.float64)
    weight = inputs["weight"].astype(np.float64)
    mean_square = np.square(x).mean(axis=1, keepdims=True)
    return {"y": x / np.sqrt(mean_square + scalars["eps"]) * weight}
