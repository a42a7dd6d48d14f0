"""Seeds drawn from the run's secret: a pool for evaluations, fresh ones for every confirm."""

from __future__ import annotations

import hashlib
from collections.abc import Callable


def seed_pool(secret: str, count: int) -> Callable[[str], tuple[str, ...]]:
    """A function from a purpose ("" = the run's pool, else the claim of a confirm) to ``count`` seeds."""

    def draw(purpose: str) -> tuple[str, ...]:
        words = (f"{secret}:{purpose or 'pool'}:{n}" for n in range(count))
        return tuple(hashlib.sha256(w.encode()).hexdigest()[:32] for w in words)

    return draw
