"""The parts of the candidate detail view, as functions of a width."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kda_tui.record.records import Candidate
from kda_tui.record.snapshot import Evaluation, Snapshot
from kda_tui.tui import words
from kda_tui.tui.folder import Folder, Samples
from kda_tui.tui.line import Line, fit, plain, span, split, wrap
from kda_tui.tui.panes.pane import Keyed
from kda_tui.tui.source import diff_lines, highlight, language_of
from kda_tui.tui.spark import histogram

LABEL = 13
BINS = 12


def evaluations_of(snapshot: Snapshot, cand: str) -> list[Evaluation]:
    """Everything that was evaluated of a candidate, newest first."""
    return sorted(
        (e for e in snapshot.evaluations.values() if e.cand == cand),
        key=lambda e: (e.run, e.seq),
        reverse=True,
    )


def overview(snapshot: Snapshot, cand: Candidate, now: float, cells: int) -> list[Keyed]:
    """Who made it and why, its verdict with every gate, where it is wrong, what was decided."""
    rows: list[Keyed] = []

    def put(label: str, *lines: Line) -> None:
        for n, line in enumerate(lines):
            head = (span(f"{label if n == 0 else '':<{LABEL}}", "dim"),)
            rows.extend(
                (f"{label}:{n}:{m}", part) for m, part in enumerate(wrap((*head, *line), cells, LABEL))
            )

    put("hypothesis", plain(cand.hypothesis or "-"))
    made = ", ".join(part for part in (cand.author or "?", words.ago(cand.t, now)) if part)
    put("made by", plain(f"{made}, run {cand.run}" if cand.run else made))
    put("parents", plain(" ".join(cand.parents) or "none"))
    children = [c.id for c in snapshot.candidates.values() if cand.id in c.parents]
    put("children", plain(" ".join(children) or "none"))
    if cand.item or cand.family:
        put("plan item", plain(" ".join(p for p in (cand.item, cand.family) if p)))
    if cand.defines:
        put("defines", plain(" ".join(f"{k}={v}" for k, v in cand.defines.items())))
    claim = next((c for c in snapshot.claims if c.cand == cand.id), None)
    put(
        "verdict",
        (
            words.verdict(cand, claim, snapshot.live, snapshot.liveness == "alive"),
            *((span(f"  {cand.reason}"),) if cand.reason else ()),
        ),
    )
    put("speed", words.comparison(cand, snapshot))
    put("time", plain(f"{words.micros(cand.time_us)} us, {words.share(cand.floor_share)} of the floor"))
    put("build", plain(_build(cand)))
    decided = words.decision(cand, snapshot, now, True)
    put("decision", (decided,))
    for evaluation in evaluations_of(snapshot, cand.id):
        put(evaluation.op, _headline(evaluation), *_evaluation_lines(evaluation))
    if cand.extra:
        put(
            "unmapped", *split(json.dumps(dict(cand.extra), ensure_ascii=False, indent=1, default=str), "dim")
        )
    return rows


def _build(cand: Candidate) -> str:
    if cand.registers is None and cand.compile_s is None:
        return "not compiled yet"
    parts = [
        f"{cand.registers} registers" if cand.registers is not None else "",
        f"{cand.spills} spills" if cand.spills is not None else "",
        f"{words.size(cand.shared_bytes)}B shared" if cand.shared_bytes is not None else "",
        f"compiled in {words.duration(cand.compile_s)}" if cand.compile_s is not None else "",
    ]
    return ", ".join(part for part in parts if part)


def _headline(e: Evaluation) -> Line:
    style = "good" if e.validity == "passed" else "bad" if e.validity else "dim"
    took = f"  {words.duration(e.dur_s)}" if e.dur_s is not None else ""
    against = f" vs {e.opponent}" if e.opponent and e.op != "compile" else ""
    verdict = " ".join(
        p for p in (e.validity or e.outcome, e.speed if e.speed != "not_measured" else "") if p
    )
    return (
        span(f"{e.id}  {words.time_of_day(e.t)}  ", "dim"),
        span(verdict, style),
        span(f"{against}{took}  {e.device} {e.trust}".rstrip(), "dim"),
    )


def _evaluation_lines(e: Evaluation) -> list[Line]:
    """Gates, per workload numbers, and where an output is wrong."""
    out: list[Line] = []
    if e.gates:
        styles = {"passed": "good", "failed": "bad"}
        gates: list[tuple[str, str]] = []
        for name, word in e.gates.items():
            gates += [
                span(f"{name} "),
                span(str(word).replace("_", " "), styles.get(str(word), "dim")),
                ("   ", ""),
            ]
        out.append(tuple(gates))
    loads = e.extra.get("workloads")
    for load in loads if isinstance(loads, list) else []:
        if isinstance(load, dict):
            out.append(_workload_line(load))
    wrong = e.extra.get("mismatch")
    if isinstance(wrong, Mapping):
        out += _mismatch_lines(wrong)
    return out


def _workload_line(load: Mapping[str, Any]) -> Line:
    interval = (
        f" [{words.ratio(_real(load.get('lo')))} {words.ratio(_real(load.get('hi')))}]"
        if load.get("lo") is not None
        else ""
    )
    return (
        span(fit(str(load.get("workload", "?")), 20)),
        span(
            f"{words.micros(_real(load.get('time_us'))):>8} us  {words.ratio(_real(load.get('ratio')))}{interval}"
        ),
        span(
            f"  floor {words.share(_real(load.get('floor_share')))}  error {words.number(_real(load.get('error')), 3)} of allowed",
            "dim",
        ),
    )


def _real(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _mismatch_lines(wrong: Mapping[str, Any]) -> list[Line]:
    at = ", ".join(str(i) for i in wrong.get("index", ()))
    out: list[Line] = [
        plain(
            f"wrong: {wrong.get('tensor')}[{at}] of {wrong.get('workload')}: got {wrong.get('got')}, expected {wrong.get('expected')}",
            "bad",
        ),
        plain(f"{wrong.get('wrong')} of {wrong.get('total')} elements, seed {wrong.get('seed')}", "bad"),
    ]
    if wrong.get("box"):
        out.append(
            plain(
                "box "
                + " x ".join(f"{a[0]}..{a[-1]}" for a in wrong["box"] if isinstance(a, list | tuple) and a),
                "dim",
            )
        )
    if wrong.get("guess"):
        out.append(plain(f"guess: {wrong['guess']}", "warn"))
    out += [plain(f"  {row}") for row in wrong.get("tile_map", ())]
    return out


def source(folder: Folder | None, name: str, cells: int) -> list[Keyed]:
    """A file with line numbers, long lines wrapped."""
    if folder is None:
        return [("reading", plain("reading…", "dim"))]
    text = folder.text(name)
    if not text:
        have = ", ".join(folder.files) or "no files"
        return [("none", plain(f"{folder.name} has no {name} ({have})", "dim"))]
    rows: list[Keyed] = []
    for number, line in enumerate(highlight(text, language_of(name)), 1):
        for m, part in enumerate(wrap(line, cells - 6)):
            gutter = f"{number:>4}  " if m == 0 else "      "
            rows.append((f"{number}:{m}", (span(gutter, "dim"), *part)))
    return rows


def diff(before: Folder | None, after: Folder | None, cells: int) -> list[Keyed]:
    """Kernel and launch plan of two candidates, one under the other."""
    if before is None or after is None:
        return [("reading", plain("reading…", "dim"))]
    rows: list[Keyed] = []
    names = [name for name in {**after.files, **before.files} if name != "notes.md"]
    for name in sorted(names, key=lambda n: (n != "kernel.cu", n)):
        lines = diff_lines(
            before.text(name), after.text(name), f"{before.name}/{name}", f"{after.name}/{name}"
        )
        for n, line in enumerate(lines):
            rows += [(f"{name}:{n}:{m}", part) for m, part in enumerate(wrap(line, cells, 2))]
        rows.append((f"{name}:end", ()))
    return rows or [("none", plain("neither has files", "dim"))]


def compile_report(snapshot: Snapshot, cand: Candidate, cells: int) -> list[Keyed]:
    """What the compiler said, newest evaluation first."""
    for evaluation in evaluations_of(snapshot, cand.id):
        report = evaluation.extra.get("compile")
        if isinstance(report, Mapping):
            break
    else:
        return [("none", plain("no compile report in the record", "dim"))]
    lines: list[Line] = [plain(_build(cand))]
    facts = " ".join(str(report.get(k)) for k in ("compiler",) if report.get(k))
    lines.append(plain(f"{facts}{', from the cache' if report.get('cached') else ''}", "dim"))
    if report.get("not_possible"):
        lines.append(plain(f"not possible on this device: {report['not_possible']}", "warn"))
    for warning in report.get("warnings", ()):
        lines.append(plain(f"warning: {warning}", "warn"))
    for text in split(str(report.get("log", ""))):
        body = text[0][0] if text else ""
        lines.append(plain(body, "bad" if "error" in body else "warn" if "warning" in body else ""))
    return [(f"{n}:{m}", part) for n, line in enumerate(lines) for m, part in enumerate(wrap(line, cells, 2))]


def samples(data: Samples | None, cells: int) -> list[Keyed]:
    """A histogram per workload and arm, microseconds; arms of one workload share their range in words."""
    if data is None:
        return [("reading", plain("reading…", "dim"))]
    if not data:
        return [("none", plain("no samples in the record: it was not timed", "dim"))]
    rows: list[Keyed] = []
    for (load, arm), values in data.items():
        key = f"{load}:{arm}"
        ordered = sorted(values)
        middle = ordered[len(ordered) // 2] if ordered else None
        rows.append(
            (
                key,
                (
                    span(f"{load}  {arm}", "bold"),
                    span(f"  {len(values)} samples, median {words.micros(middle)} us", "dim"),
                ),
            )
        )
        for n, (low, high, count, mark) in enumerate(histogram(values, BINS, max(10, cells - 34))):
            label = f"{words.micros(low):>8} - {words.micros(high):>8} {count:>6}  "
            rows.append(
                (f"{key}:{n}", (span(label, "dim"), span(mark, "info" if arm == "candidate" else "")))
            )
        rows.append((f"{key}:end", ()))
    return rows


def notes(folder: Folder | None, cand: Candidate, cells: int) -> list[Keyed]:
    """notes.md, else what the ledger says in words."""
    if folder is None:
        return [("reading", plain("reading…", "dim"))]
    text = folder.text("notes.md") or cand.reason or "no notes"
    return [
        (f"{n}:{m}", part) for n, line in enumerate(split(text)) for m, part in enumerate(wrap(line, cells))
    ]


__all__: Sequence[str] = (
    "compile_report",
    "diff",
    "evaluations_of",
    "notes",
    "overview",
    "samples",
    "source",
)
