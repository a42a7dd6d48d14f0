"""y[i] = x[index[i]] + 1, wrapping."""

import numpy as np


def reference(inputs, scalars):
    return {"y": (inputs["x"][inputs["index"]] + 1).astype(np.int8)}
