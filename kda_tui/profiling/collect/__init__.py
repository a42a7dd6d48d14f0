"""Collecting a profile with ncu, through the evaluator's own launch code."""

from kda_tui.profiling.collect.ncu import Collected, Wanted, collect, dump, find_ncu
from kda_tui.profiling.collect.states import REMEDIES

__all__ = ["REMEDIES", "Collected", "Wanted", "collect", "dump", "find_ncu"]
