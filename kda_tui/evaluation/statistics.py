"""The statistics of speed decisions, pure: Student t, block log ratios, bounds, the rule of a confirm.

A *block* maps each workload to ln(opponent time / candidate time), measured once, paired. Positive
is faster. Bounds are Student t over blocks: a percentile bootstrap of eight blocks errs far too often.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

Block = Mapping[str, float]

CONFIDENCE = 0.95
SCREEN_STOP = math.log(0.97)
CONFIRM_ALPHA = 0.01
LOOK_ALPHA = 0.05 / 3  # one-sided, for each of the three looks at a workload's floor
MAX_LOOKS = 3


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularised incomplete beta function I_x(a, b), by the continued fraction of DLMF 8.17.22.

    Evaluated with the modified Lentz method; the symmetry I_x(a, b) = 1 - I_{1-x}(b, a)
    (DLMF 8.17.4) keeps x where the fraction converges quickly.
    """
    if not 0.0 <= x <= 1.0:
        raise ValueError(f"x must lie in [0, 1], got {x}")
    if x in (0.0, 1.0):
        return x
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - incomplete_beta(b, a, 1.0 - x)
    front = math.exp(
        a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    )
    return front * _beta_fraction(a, b, x) / a


def _beta_fraction(a: float, b: float, x: float) -> float:
    tiny = 1e-300
    c, d = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0), tiny)
    value = d
    for m in range(1, 400):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        step = 1.0
        for numerator in (even, odd):
            d = 1.0 / _away_from_zero(1.0 + numerator * d, tiny)
            c = _away_from_zero(1.0 + numerator / c, tiny)
            step = c * d
            value *= step
        if abs(step - 1.0) < 1e-15:
            break
    return value


def _away_from_zero(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny


def t_upper_tail(t: float, df: int) -> float:
    """P(T > t) for Student's t with ``df`` degrees of freedom."""
    tail = 0.5 * incomplete_beta(df / 2.0, 0.5, df / (df + t * t))
    return tail if t >= 0 else 1.0 - tail


@lru_cache(maxsize=4096)
def t_quantile(alpha: float, df: int) -> float:
    """The t with P(T > t) = ``alpha``, for 0 < alpha < 1; found by bisection, good to 1e-12 relative."""
    if not 0.0 < alpha < 1.0 or df < 1:
        raise ValueError(f"alpha must lie in (0, 1) and df be positive, got {alpha}, {df}")
    if alpha > 0.5:
        return -t_quantile(1.0 - alpha, df)
    low, high = 0.0, 1.0
    while t_upper_tail(high, df) > alpha:
        low, high = high, high * 2.0
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if t_upper_tail(middle, df) > alpha else (low, middle)
    return 0.5 * (low + high)


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with bounds, in logarithms; bounds are infinite when fewer than two values exist."""

    mean: float
    lo: float
    hi: float
    n: int

    @property
    def ratio(self) -> float:
        return math.exp(self.mean)


def interval(values: Sequence[float], alpha: float = 1.0 - CONFIDENCE) -> Interval | None:
    """Two-sided Student t interval of level 1 - ``alpha``; None without values."""
    n = len(values)
    if n == 0:
        return None
    mean = math.fsum(values) / n
    if n == 1:
        return Interval(mean, -math.inf, math.inf, 1)
    half = t_quantile(alpha / 2.0, n - 1) * _standard_error(values, mean)
    return Interval(mean, mean - half, mean + half, n)


def lower_bound(values: Sequence[float], alpha: float) -> float:
    """One-sided Student t lower bound of the mean at level 1 - ``alpha``; -inf below two values."""
    n = len(values)
    if n < 2:
        return -math.inf
    mean = math.fsum(values) / n
    return mean - t_quantile(alpha, n - 1) * _standard_error(values, mean)


def upper_bound(values: Sequence[float], alpha: float) -> float:
    """One-sided Student t upper bound of the mean at level 1 - ``alpha``; inf below two values."""
    return -lower_bound([-v for v in values], alpha)


def _standard_error(values: Sequence[float], mean: float) -> float:
    n = len(values)
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1) / n)


def block_mean(block: Block, weights: Mapping[str, float]) -> float | None:
    """L_b: the weighted mean log ratio; None unless the block has every weighted workload."""
    total = math.fsum(weights.values())
    if total <= 0.0 or any(name not in block for name in weights):
        return None
    return math.fsum(w * block[name] for name, w in weights.items()) / total


def block_means(blocks: Iterable[Block], weights: Mapping[str, float]) -> list[float]:
    """L_b of the complete blocks, in order."""
    return [mean for block in blocks if (mean := block_mean(block, weights)) is not None]


def of_workload(blocks: Iterable[Block], workload: str) -> list[float]:
    return [block[workload] for block in blocks if workload in block]


def alpha_at(k: int) -> float:
    """What the k-th confirmation of a workspace and contract may spend; the sum over all k is 0.01."""
    if k < 1:
        raise ValueError(f"confirmations are counted from 1, got {k}")
    return CONFIRM_ALPHA / (k * (k + 1))


@dataclass(frozen=True, slots=True)
class PromotionNumbers:
    """The numbers of a contract's promotion rule: ratios, not logarithms."""

    min_speedup: float
    weights: Mapping[str, float]
    floors: Mapping[str, float]

    @property
    def margin(self) -> float:
        return math.log(self.min_speedup)


def broken_floors(blocks: Sequence[Block], numbers: PromotionNumbers, alpha: float = 0.05) -> tuple[str, ...]:
    """Workloads that are surely below their floor: the one-sided upper bound is under it."""
    return tuple(
        name
        for name, floor in numbers.floors.items()
        if upper_bound(of_workload(blocks, name), alpha) < math.log(floor)
    )


def speed_word(overall: Interval | None, margin: float, broken: Sequence[str] = ()) -> str:
    """faster | same | slower | mixed | inconclusive, from the interval of L_b.

    ``faster`` needs a lower bound above 1 *and* an estimate of at least ``margin`` (a logarithm): a
    hundred comparisons of equal kernels should not produce one ``faster``.
    """
    if overall is None or overall.n < 2:
        return "inconclusive"
    if overall.lo > 0.0 and overall.mean >= margin:
        return "mixed" if broken else "faster"
    if overall.hi < 0.0 and overall.mean <= -margin:
        return "slower"
    if overall.lo >= -margin and overall.hi <= margin:
        return "mixed" if broken else "same"
    return "inconclusive"


@dataclass(frozen=True, slots=True)
class ConfirmDecision:
    """What three children of blocks say. ``unclear`` workloads may be given eight extra blocks."""

    promote: bool
    speed: str
    alpha: float
    bound: float  # ratio, lower bound at alpha
    overall: Interval | None
    child_means: tuple[float, ...]  # ratios
    broken: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    floors: Mapping[str, float] = field(default_factory=dict)  # workload -> lower bound, a ratio

    @property
    def wants_more(self) -> bool:
        """Only the floors stand in the way and none is broken: extra blocks can decide."""
        return bool(self.unclear) and not self.broken and not self.reasons


def decide_confirm(
    blocks_by_child: Sequence[Sequence[Block]],
    numbers: PromotionNumbers,
    k: int,
    extra: Sequence[Block] = (),
) -> ConfirmDecision:
    """The written rule, (a) and (b) of a confirm; (c), the gates, is the caller's.

    (a) the t lower bound over all blocks at alpha_k, and every child's mean, reach ln(min_speedup);
    (b) every workload's one-sided lower bound reaches its floor. ``extra`` blocks count for (b) only:
    looking again at (a) would spend alpha that nobody has.
    """
    alpha = alpha_at(k)
    blocks = [block for child in blocks_by_child for block in child]
    means = block_means(blocks, numbers.weights)
    bound = lower_bound(means, alpha)
    child_means = tuple(_mean(block_means(child, numbers.weights)) for child in blocks_by_child)
    reasons: list[str] = []
    if not bound >= numbers.margin:
        reasons.append(
            f"lower bound {math.exp(bound):.4f} at alpha {alpha:.2g} is under {numbers.min_speedup:g}"
        )
    weak = [i + 1 for i, mean in enumerate(child_means) if not mean >= numbers.margin]
    if weak:
        reasons.append(f"the mean of child {', '.join(map(str, weak))} is under {numbers.min_speedup:g}")
    floors, broken, unclear = _judge_floors([*blocks, *extra], numbers)
    promote = not (reasons or broken or unclear)
    overall = interval(means)
    word = "faster" if promote else _confirm_word(overall, numbers, broken, unclear, bool(reasons))
    return ConfirmDecision(
        promote=promote,
        speed=word,
        alpha=alpha,
        bound=math.exp(bound),
        overall=overall,
        child_means=tuple(math.exp(m) for m in child_means),
        broken=broken,
        unclear=unclear,
        reasons=tuple(reasons),
        floors=floors,
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else -math.inf


def _judge_floors(
    blocks: Sequence[Block], numbers: PromotionNumbers
) -> tuple[dict[str, float], tuple[str, ...], tuple[str, ...]]:
    floors: dict[str, float] = {}
    unclear: list[str] = []
    for name, floor in numbers.floors.items():
        bound = lower_bound(of_workload(blocks, name), LOOK_ALPHA)
        floors[name] = math.exp(bound)
        if not bound >= math.log(floor):
            unclear.append(name)
    broken = tuple(n for n in broken_floors(blocks, numbers, LOOK_ALPHA) if n in unclear)
    return floors, broken, tuple(n for n in unclear if n not in broken)


def _confirm_word(
    overall: Interval | None,
    numbers: PromotionNumbers,
    broken: Sequence[str],
    unclear: Sequence[str],
    rule_a_failed: bool,
) -> str:
    if not rule_a_failed:
        return "mixed" if broken else "inconclusive"
    word = speed_word(overall, numbers.margin, broken)
    return "inconclusive" if word == "faster" else word


def quantile(values: Sequence[float], q: float) -> float:
    """The q-quantile by linear interpolation between order statistics; ``values`` must not be empty."""
    ordered = sorted(values)
    position = q * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def median(values: Sequence[float]) -> float:
    return quantile(values, 0.5)
