"""What a fresh conversation is built from: contract, plan, skills, best candidates, results, people's notes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kda_tui.agents.tools.bench import folder_files, workload_times
from kda_tui.agents.tools.files import Shelf
from kda_tui.agents.tools.tool import ToolError
from kda_tui.record.families import families
from kda_tui.record.plain_file import Refused, read_plain
from kda_tui.record.records import Candidate
from kda_tui.record.snapshot import Snapshot
from kda_tui.skills.skill import Skill

NONE = "(none)"
MAX_RESULTS = 24
MAX_DECISIONS = 12
MAX_TEXT = 32 << 10  # bytes of one document
MAX_NAMES = 120
SOURCES = (64 << 10, 24 << 10, 8 << 10)  # bytes of sources in all, by how tight the context is
IN_FULL = "write-a-candidate"  # the skill that is given whole
DECISIONS = (
    "approve_promotion",
    "decline",
    "promote",
    "veto",
    "unveto",
    "revoke",
    "request_changes",
    "approve_plan",
)


@dataclass(frozen=True, slots=True)
class Context:
    """The record as text. ``tightness`` 0 to 2 leaves out more and more of the sources."""

    snap: Snapshot
    shelf: Shelf
    tightness: int = 0

    def document(self, name: str) -> str:
        """A file of the workspace, cut; ``(none)`` where there is none."""
        try:
            data = read_plain(self.shelf.root / name, self.shelf.root, 1 << 22)
        except Refused:
            return NONE
        text = data[:MAX_TEXT].decode("utf-8", "replace").strip()
        return (text or NONE) + ("\n[cut]" if len(data) > MAX_TEXT else "")

    def fixed(self) -> dict[str, str]:
        """What stays the same over a run: the beginning of every conversation, so that it is cached."""
        return {
            "contract": self.document("contract.toml"),
            "reference": self.document("reference.py"),
            "device": self.device(),
            "skills": skill_digest(self.shelf.skills),
        }

    def device(self) -> str:
        facts = dict(self.snap.run.device) if self.snap.run else {}
        return "\n".join(f"* {k}: {v}" for k, v in facts.items()) or NONE

    def plan(self) -> str:
        """The newest revision that counts: the one in force, else the one proposed last."""
        chosen = self.snap.plan.in_force or self.snap.plan.newest
        return self.document(chosen.file) if chosen is not None else NONE

    def items(self) -> str:
        return "\n".join(f"* {i.id} [{i.state}] {i.title}" for i in self.snap.plan.items) or NONE

    def files(self) -> str:
        names = [n for n, _ in zip(self.shelf.names(""), range(MAX_NAMES), strict=False)]
        return "\n".join(names) or NONE

    def notes(self) -> str:
        """Steering notes that bind: those not seen yet, and the last ones that were; none that was taken back."""
        binding = [n for n in self.snap.steering if n.pinned or n.seen_turn is not None]
        lines = [f"* {n.who}{'' if n.seen_turn is not None else ' (new)'}: {n.text}" for n in binding]
        return "\n".join(lines[-20:]) or NONE

    def decisions(self) -> str:
        taken = [d for d in self.snap.decisions if d.kind in DECISIONS and d.outcome == "taken"]
        lines = []
        for d in taken[-MAX_DECISIONS:]:
            about = d.target.get("cand") or (
                f"plan r{d.target['plan_rev']}" if d.target.get("plan_rev") else ""
            )
            why = d.reason or d.text or "; ".join(str(line.get("text", "")) for line in d.lines)
            lines.append(f"* {d.kind} {about} by {d.who or d.by}: {why or '(no reason)'}")
        reviews = [r for r in self.snap.reviews if r.about == "promotion" and r.verdict != "none"]
        lines += [
            f"* review of {r.target.get('cand')}: {r.verdict}: {r.summary} ({r.file})" for r in reviews[-3:]
        ]
        return "\n".join(lines) or NONE

    def state(self) -> str:
        snap = self.snap
        waiting = [c.id for c in snap.candidates.values() if c.decision == "requested"]
        lines = [
            f"* incumbent: {snap.incumbent.cand}",
            f"* candidates so far: {len(snap.candidates)}",
            f"* confirmations so far: {snap.confirmations} (each makes the next one's test stricter)",
        ]
        if waiting:
            lines.append(f"* promotion requested, not decided: {', '.join(waiting)}")
        for line in snap.budget.values():
            if line.limit is not None:
                lines.append(f"* budget {line.axis}: {line.used:.4g} of {line.limit:.4g}")
        if snap.contract is not None:
            rule = snap.contract.promotion
            lines.append(
                f"* a promotion needs {rule.min_speedup:g} overall and {rule.floor:g} on every workload"
            )
        return "\n".join(lines)

    def results(self) -> str:
        found = list(self.snap.candidates.values())[-MAX_RESULTS:]
        return "\n".join(result_line(c) for c in found) or NONE

    def workloads(self) -> str:
        """For each workload the candidate with the best ratio against the incumbent of now."""
        best: dict[str, tuple[float, str]] = {}
        for c in self.snap.candidates.values():
            if c.validity != "passed" or c.opponent != self.snap.incumbent.cand:
                continue
            for name, row in workload_times(self.snap, c.id).items():
                ratio = row.get("ratio")
                if isinstance(ratio, int | float) and ratio > best.get(name, (0.0, ""))[0]:
                    best[name] = (float(ratio), c.id)
        lines = [
            f"* {name}: {cand} {ratio:.3f} against {self.snap.incumbent.cand}"
            for name, (ratio, cand) in best.items()
        ]
        if len({cand for _, cand in best.values()}) > 1:
            lines.append("Different workloads want different candidates: a launch plan can choose by shape.")
        return "\n".join(lines) or NONE

    def families(self) -> str:
        lines = []
        for f in families(self.snap.candidates.values()):
            best = f", best {f.best_cand} {f.best:.3f}" if f.best is not None else ""
            stale = f"; STAGNATES: {f.since_best} since the best" if f.is_stale else ""
            lines.append(f"* {f.name}: {f.judged} judged, {f.passed} passed{best}{stale}")
        if never := self.never_tried():
            lines.append(f"Never tried: {'; '.join(never)}")
        return "\n".join(lines) or NONE

    def never_tried(self) -> list[str]:
        """Open plan items, then techniques of the wiki that no hypothesis and no family names."""
        open_items = [f"{i.id} {i.title}" for i in self.snap.plan.items if i.state == "open"]
        said = " ".join(f"{c.family} {c.hypothesis}" for c in self.snap.candidates.values()).lower()
        wiki = next((s for s in self.shelf.skills if s.name == "kernel-wiki"), None)
        pages = [p.stem for p in wiki.pages()[1:]] if wiki is not None else []
        words = [p for p in pages if not any(part in said for part in (p, p.replace("-", " ")))]
        return [*open_items[:6], *words[:12]]

    def best(self) -> list[str]:
        """The incumbent, then the fastest candidates against it."""
        rivals = [
            c
            for c in self.snap.candidates.values()
            if c.validity == "passed"
            and c.ratio is not None
            and c.opponent == self.snap.incumbent.cand
            and c.decision not in ("vetoed", "revoked")
        ]
        rivals.sort(key=lambda c: -(c.ratio or 0.0))
        return list(dict.fromkeys((self.snap.incumbent.cand, *(c.id for c in rivals[:2]))))

    def sources(self, candidates: Sequence[str] = ()) -> str:
        left = SOURCES[self.tightness]
        parts = []
        for cand in candidates or self.best():
            c = self.snap.candidates.get(cand)
            parts.append(f"## {cand}" + (f"\n\n{result_line(c)}" if c is not None else ""))
            try:
                files = folder_files(self.shelf, cand)
            except ToolError as error:
                parts.append(f"({error})")
                continue
            for name, text in files.items():
                if len(text) > left:
                    parts.append(f"`{name}`: {len(text)} characters; read it with read_file")
                    continue
                left -= len(text)
                parts.append(f"`{name}`\n\n```\n{text.rstrip()}\n```")
        return "\n\n".join(parts) or NONE

    def profile(self, cand: str) -> str:
        """What the summary of a profile says, in short."""
        text = self.document(f"profile/{cand}/summary.json")
        if text == NONE:
            return NONE
        try:
            kernels = json.loads(text).get("kernels", [])
            return "\n".join(f"* {k['name']}: {k['verdict']}" for k in kernels) or NONE
        except (ValueError, TypeError, KeyError, AttributeError):
            return "(the summary cannot be read here)"


def result_line(c: Candidate) -> str:
    """One candidate in one line: id, item, family, verdict, ratio, what people said."""
    ratio = f", {c.ratio:.3f}" if c.ratio is not None else ""
    if c.lo is not None and c.hi is not None:
        ratio += f" [{c.lo:.3f} {c.hi:.3f}] against {c.opponent}"
    verdict = " ".join(w for w in (c.validity or c.stage, c.speed) if w)
    decision = f", {c.decision}" if c.decision else ""
    reason = f" ({c.reason[:160]})" if c.reason else ""
    about = " ".join(w for w in (c.item, c.family) if w)
    return f"* {c.id} {about}: {verdict}{ratio}{decision}; {c.hypothesis[:200]}{reason}"


def comment_text(comments: Sequence[Mapping[str, Any]]) -> str:
    """Change requests: which decision, which line, what was quoted, what was said."""
    lines = []
    for c in comments:
        place = f" on r{c['rev']}" if c.get("rev") else ""
        if c.get("item") or c.get("line"):
            place += f", {'item ' + str(c['item']) if c.get('item') else 'line ' + str(c['line'])}"
        quote = f' "{c["quote"]}"' if c.get("quote") else ""
        lines.append(
            f"* [{c.get('decision')}] {c.get('who') or 'a person'}{place}{quote}: {c.get('text') or '(no text)'}"
        )
    return "\n".join(lines) or NONE


def skill_digest(skills: Sequence[Skill]) -> str:
    """Names and descriptions; the skill on writing candidates whole, since nothing works without it."""
    lines = [f"* `{s.name}`: {s.description}" for s in skills]
    lines += [f"\n## {s.name}\n\n{s.body.strip()}" for s in skills if s.name == IN_FULL]
    return "\n".join(lines) or NONE


def shelf_of(root: Path, snap: Snapshot, skills: Sequence[Skill]) -> Shelf:
    folder = snap.contract.baseline.candidate if snap.contract else None
    return Shelf(root, tuple(skills), folder or "baseline")
