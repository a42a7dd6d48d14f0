"""``kda open --check``: every workspace of a folder in words or as JSON, without a screen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kda_tui.cli.output import print_json, say
from kda_tui.profiling.survey import survey
from kda_tui.record.foreign.check import check

_MOST_PROFILES = 60  # read of one workspace


def print_check(folder: Path, as_json: bool) -> int:
    """Print what is at or below a folder; 0 also where there are findings: they are told, not judged."""
    found = check(folder)
    for entry in found:
        entry["profiles"] = _profiles(Path(entry["workspace"]), entry["profiles"])
    if as_json:
        print_json(found)
    else:
        say("\n".join(line for entry in found for line in _lines(entry)))
    return 0


def _profiles(root: Path, names: list[str]) -> list[dict[str, Any]]:
    """Each profile with its kernels and, where there are no hot lines, why."""
    read = survey(root, names[:_MOST_PROFILES])
    listed: list[dict[str, Any]] = [
        {
            "file": one.file,
            "form": one.digest.get("form", ""),
            "version": one.digest.get("version", ""),
            "kernels": [kernel.get("name", "") for kernel in one.kernels],
            "hotspots": len(one.hot["hotspots"]) if one.hot is not None else 0,
            "why_no_hotspots": one.why_no_hotspots,
        }
        for one in read
    ]
    over = names[_MOST_PROFILES:]
    return listed + [
        {"file": name, "why_no_hotspots": f"not read: only {_MOST_PROFILES} are"} for name in over
    ]


def _lines(entry: Mapping[str, Any]) -> list[str]:
    rows, shown, best = entry["rows"], entry["shown"], entry["best"]
    lines = [f"{entry['workspace']}  {entry['kind']}  {entry['seconds']:.3f} s"]
    if rows:
        lines.append(
            f"  rows       {rows['ledger']} in ledgers ({shown['candidates']} of candidates, {shown['events']} of events),"
            f" {rows['table']} in tables ({shown['numbers']} with numbers, {shown['text']} as text)"
        )
    lines.append(f"  candidates {entry['candidates']}")
    if best is not None:
        ratio = (
            f"{best['ratio']:.3f}x, {best['stated']}" if best["ratio"] is not None else "no speedup stated"
        )
        metric = f", {best['metric']}" if best["metric"] else ""
        lines.append(f"  best       {best['cand']}  {ratio}{metric}; {best['source']}: {best['words'][:120]}")
    lines += [
        f"  profile    {p['file']}: {p['why_no_hotspots'] or str(p['hotspots']) + ' hot lines'}"
        for p in entry["profiles"]
    ]
    lines += [
        f"  {f['severity']:10} {f['file']}{':' + str(f['line']) if f['line'] else ''}: {f['seen']}; {f['done']}"
        for f in entry["findings"]
    ]
    return lines
