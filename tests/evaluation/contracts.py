"""Contracts written in a few lines, for tests."""

from __future__ import annotations

from kda_tui.record.contract import Contract, parse_contract

HEAD = """
[task]
name = "t"
device = "cpu"
"""
TAIL = """
[baseline]
candidate = "baseline"
"""
COPY = """
[[tensor]]
name = "x"
role = "in"
dtype = "float32"
shape = ["m", "n"]

[[tensor]]
name = "y"
role = "out"
dtype = "float32"
shape = ["m", "n"]
check = {rel_l2 = 1e-5, tile = ["row"]}

[[workload]]
id = "w"
axes = {m = 4, n = 6}
"""


def contract(body: str = COPY) -> Contract:
    return parse_contract((HEAD + body + TAIL).encode())
