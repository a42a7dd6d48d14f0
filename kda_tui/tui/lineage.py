"""Candidates as a tree by first parent; a parent that is unknown or would close a circle makes a root."""

from __future__ import annotations

from collections.abc import Mapping

from kda_tui.record.records import Candidate


def tree(candidates: Mapping[str, Candidate]) -> list[tuple[str, str]]:
    """(id, branch drawing) depth first, children in order of birth."""
    children: dict[str, list[str]] = {}
    roots: list[str] = []
    for cand in candidates.values():
        parent = next((p for p in cand.parents if p in candidates and p != cand.id), "")
        if parent and not _circle(cand.id, parent, candidates):
            children.setdefault(parent, []).append(cand.id)
        else:
            roots.append(cand.id)
    out: list[tuple[str, str]] = []
    stack: list[tuple[str, str, str]] = [(root, "", "") for root in reversed(roots)]
    while stack:
        cand_id, draw, indent = stack.pop()
        out.append((cand_id, draw))
        below = children.get(cand_id, [])
        for n, child in reversed(list(enumerate(below))):
            last = n == len(below) - 1
            stack.append((child, indent + ("└ " if last else "├ "), indent + ("  " if last else "│ ")))
    return out


def _circle(cand: str, parent: str, candidates: Mapping[str, Candidate]) -> bool:
    """Whether going up from ``parent`` comes back to ``cand``."""
    seen = {cand}
    at = parent
    while at and at in candidates:
        if at in seen:
            return True
        seen.add(at)
        at = next((p for p in candidates[at].parents if p in candidates and p != at), "")
    return False
