"""Tokens and money of one turn. A model without a price has unknown costs: None, never 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kda_tui.config import Price

CHARS_A_TOKEN = 4  # only for estimates; what is booked counts tokens where the API told them


def price_of(prices: Mapping[str, Price], model: str) -> Price | None:
    """The price of a model, also of a dated name (``NAME-20261001``)."""
    if model in prices:
        return prices[model]
    known = [name for name in prices if model.startswith(f"{name}-")]
    return prices[max(known, key=len)] if known else None


def usage_of(usage: Any) -> dict[str, int]:
    """``message.usage`` as {in, out, cache_write, cache_read}; ``in`` counts what was neither written nor read."""
    return {
        "in": int(usage.input_tokens or 0),
        "out": int(usage.output_tokens or 0),
        "cache_write": int(usage.cache_creation_input_tokens or 0),
        "cache_read": int(usage.cache_read_input_tokens or 0),
    }


def cost(usage: Mapping[str, int], price: Price | None) -> float | None:
    """US dollars."""
    if price is None:
        return None
    per_million = (
        usage.get("in", 0) * price.input
        + usage.get("out", 0) * price.output
        + usage.get("cache_write", 0) * price.cache_write
        + usage.get("cache_read", 0) * price.cache_read
    )
    return per_million / 1e6


def estimate(characters: int, output_tokens: int, price: Price | None) -> float | None:
    """What a request may cost at most in the usual case: nothing of its input is in the cache yet."""
    return cost({"cache_write": characters // CHARS_A_TOKEN, "out": output_tokens}, price)
