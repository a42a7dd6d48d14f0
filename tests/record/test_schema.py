"""The schemas describe what the recorder writes, and docs/records.md describes the schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from kda_tui.record.inbox import new_decision, send
from kda_tui.record.journal import Recorder
from kda_tui.record.lock import WorkspaceLock
from kda_tui.record.paths import Workspace
from kda_tui.record.records import BENCHMARK_COLUMNS, Candidate, Decision, TranscriptBlock
from kda_tui.record.schema import CANDIDATE, COLUMNS, DECISION, TRANSCRIPT, schemas
from kda_tui.record.schema_docs import render
from kda_tui.text import Redactor

DEFS: Mapping[str, Any] = schemas()["$defs"]
TYPES: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "object": dict,
    "array": list,
    "null": type(None),
}


def faults(schema: Mapping[str, Any], value: Any, at: str = "") -> Iterator[str]:
    """What of a value does not fit a schema: the few words of JSON Schema that the records use."""
    if "$ref" in schema:
        yield from faults(DEFS[schema["$ref"].rpartition("/")[2]], value, at)
    if "anyOf" in schema and all(any(faults(one, value)) for one in schema["anyOf"]):
        yield f"{at}: {value!r} fits none of the alternatives"
    if "const" in schema and value != schema["const"]:
        yield f"{at}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r} is none of {schema['enum']}"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    is_number = isinstance(value, bool) and "boolean" not in kinds
    if kinds and (is_number or not isinstance(value, tuple(_flat(TYPES[k] for k in kinds)))):
        yield f"{at}: {value!r} is no {' or '.join(kinds)}"
        return
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{at}: {value!r} does not look like {schema['pattern']}"
    if isinstance(value, int) and value < schema.get("minimum", value):
        yield f"{at}: {value} is too small"
    if isinstance(value, dict):
        yield from (f"{at}.{key}: missing" for key in schema.get("required", ()) if key not in value)
        for key, item in value.items():
            inner = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
            if isinstance(inner, dict):
                yield from faults(inner, item, f"{at}.{key}")
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from faults(schema["items"], item, f"{at}[{index}]")


def _flat(kinds: Iterator[Any]) -> Iterator[Any]:
    for kind in kinds:
        yield from kind if isinstance(kind, tuple) else (kind,)


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    """A workspace with one run that wrote every kind of event at least once."""
    ws = Workspace(tmp_path)
    ws.contract.write_text("[task]\n")
    ws.reference.write_text("x = 1\n")
    sent = send(ws, new_decision("veto", target={"cand": "c0001"}, reason="slow", who="Ada"))
    taken = Decision(sent.id, sent.kind, sent.t, outcome="taken", effects=(3,), uid=0)
    with WorkspaceLock.acquire(ws) as lock, Recorder.create_run(ws, lock, Redactor({})) as r:
        r.event("run_started", agent="tuner", seed_commit="ab" * 32, **r.keep_inputs(None))
        r.event("phase", **{"from": "", "to": "draft", "why": "begins"})
        r.event("hold", on=True, why="person", decision=sent.id)
        plan = r.artifact(ws.plans / "r001.md", b"# Plan\n")
        r.event("plan", rev=1, file="docs/plans/r001.md", sha=plan, items=[{"id": "p1", "title": "tiles"}])
        r.event("item", id="p1", state="doing")
        r.event("gate_open", gate="g1", gate_kind="plan", target={"plan_rev": 1}, blocking=True)
        r.event("gate_close", gate="g1", gate_kind="plan", outcome="approved", decision=taken)
        r.event("question", q="q1", text="why?", options=["yes", "no"])
        r.event("steer_seen", decision=sent.id, turn=2)
        review = {"subject": "plan:1", "about": "plan", "target": {"plan_rev": 1}, "verdict": "accept"}
        r.event(
            "review", **review, findings=[{"severity": "minor", "text": "t", "evidence": "contract.toml"}]
        )
        files = r.artifacts(ws.candidate("c0001"), {"kernel.cu": b"k", "launch.toml": b"l"})
        r.event("candidate", candidate=Candidate("c0001", author="tuner", parents=("c0000",)), files=files)
        r.event("claim", claim="e1", op="evaluate", cand="c0001", attempt=1, pgid=5, plan_rev=None)
        r.event(
            "result",
            claim="e1",
            outcome="ok",
            attempt=1,
            cand="c0001",
            candidate=Candidate("c0001", stage="judged", validity="passed", speed="faster", ratio=1.2),
            rows=[{"workload": "w", "arm": "c0001", "median_us": float("nan"), "admissible": True}],
        )
        r.event("incumbent", cand="c0001", prev="baseline", why="promoted", eval="e1")
        r.event("budget", axis="hours", used=1.5, limit=None, level="ok")
        r.event("decision", decision=taken, todo=[])
        r.transcript(TranscriptBlock(text="hello", turn=1, usage={"in": 1}))
        r.checkpoint({"phase": "iterate"})
    with ws.run("r001").events.open("ab") as torn:
        torn.write(b'{"v":1,"se')
    with WorkspaceLock.acquire(ws) as lock, Recorder.open(ws, lock, "r001", Redactor({})) as r:
        r.event("selftest", rows=[])
        r.event("run_ended", why="end_after", by="Ada")
    return ws


def objects(path: Path) -> list[dict[str, Any]]:
    lines = path.read_bytes().split(b"\n")[:-1]
    return [json.loads(line) for line in lines if not line.endswith(b"#torn")]


def test_every_line_fits_its_schema(ws: Workspace) -> None:
    events = objects(ws.run("r001").events)
    known = {name.partition("/")[2] for name in DEFS if name.startswith("events.jsonl/")}
    assert {event["kind"] for event in events} == known, "every kind is described, every description is tried"
    found = [fault for e in events for fault in faults(DEFS[f"events.jsonl/{e['kind']}"], e, e["kind"])]
    ledgers = ((ws.candidates_ledger, "candidates.jsonl"), (ws.decisions, "decisions.jsonl"))
    for path, name in (*ledgers, (ws.run("r001").transcript, "transcript.jsonl")):
        lines = objects(path)
        assert lines
        found += [fault for line in lines for fault in faults(DEFS[name], line, name)]
    for path in ws.inbox.iterdir():
        found += faults(DEFS["inbox"], json.loads(path.read_bytes()), "inbox")
    assert found == []


def test_the_checker_of_this_test_finds_faults(ws: Workspace) -> None:
    line = objects(ws.candidates_ledger)[0]
    for change in ({"stage": "gone"}, {"seq": 0}, {"t": "yesterday"}, {"ratio": "fast"}, {"parents": [1]}):
        assert list(faults(DEFS["candidates.jsonl"], {**line, **change})), change
    assert list(faults(DEFS["candidates.jsonl"], {"id": "c1"}))


def test_schemas_name_the_fields_of_the_records() -> None:
    stamps = {"v", "seq", "t", "run", "extra"}
    for kind, record in ((CANDIDATE, Candidate), (DECISION, Decision), (TRANSCRIPT, TranscriptBlock)):
        named = {f.name for f in kind.fields}
        assert {f.name for f in fields(record)} - stamps <= named
    assert tuple(COLUMNS) == BENCHMARK_COLUMNS


def test_the_page_about_records_is_up_to_date() -> None:
    page = Path(__file__).parents[2] / "docs" / "records.md"
    assert page.read_text("utf-8") == render(), "run: python -m kda_tui.record.schema_docs > docs/records.md"
