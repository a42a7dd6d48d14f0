"""JSON Schemas of every record; docs/records.md is rendered from them.

Readers keep keys that they do not know, so the schemas allow more than they list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kda_tui.record.records import DecisionKind, Outcome, Speed, Stage, Validity
from kda_tui.record.schema_events import EVENTS
from kda_tui.record.schema_fields import (
    ANY,
    BLOBS,
    COUNT,
    EVENT_ENVELOPE,
    FLAG,
    LINK,
    NUMBER,
    OBJECT,
    OBJECTS,
    SHA,
    STAMP,
    TEXT,
    TEXTS,
    TIME,
    Field,
    Kind,
    need,
    one_of,
)

CANDIDATE = Kind(
    "candidate",
    "The state of a candidate after a change: a line of candidates.jsonl, and `candidate` in a journal line.",
    (
        need("id", TEXT, "unique in the workspace: c0001, c0002, ..."),
        need(
            "stage", {"enum": ["submitted", "compiled", "claimed", "judged", "cancelled"]}, "how far it came"
        ),
        Field("author", TEXT, "agent, tuner, person or import"),
        Field("sha256", SHA, "over what is compiled and launched"),
        Field("lang", TEXT, "cuda unless said"),
        Field("trust", TEXT, "kernel unless said: how far the evidence can be trusted"),
        Field("parents", TEXTS, "candidates it was made from"),
        Field("item", TEXT, "plan item"),
        Field("family", TEXT, "the idea it belongs to"),
        Field("hypothesis", TEXT, "what it was expected to do, and why"),
        Field("defines", OBJECT, "values of its tunables"),
        Field("attempt", COUNT, "attempts of the newest evaluation"),
        Field("validity", one_of(Validity, ""), "whether it may be compared at all"),
        Field("eval", TEXT, "claim of the evaluation that says so"),
        Field("opponent", TEXT, "the incumbent it was measured against"),
        Field("time_us", NUMBER, "weighted geometric mean over the workloads"),
        Field("ratio", NUMBER, "opponent's time over its own; above 1 is faster"),
        Field("lo", NUMBER, "lower end of the interval of the ratio"),
        Field("hi", NUMBER, "upper end"),
        Field("floor_share", NUMBER, "floor over time: 1 is the speed of light"),
        Field("worst", {"type": ["object", "null"]}, "{workload, tile, err} of the largest error"),
        Field("registers", {"type": ["integer", "null"]}, "per thread"),
        Field("spills", {"type": ["integer", "null"]}, "bytes"),
        Field("shared_bytes", {"type": ["integer", "null"]}, "static shared memory"),
        Field("compile_s", NUMBER, "seconds in the compiler"),
        Field("cubin", TEXT, "SHA-256 over all binaries"),
        Field("speed", one_of(Speed, ""), "speed, apart from validity"),
        Field("stage_reached", one_of(Stage, ""), "last stage of the evaluation"),
        Field(
            "decision",
            {"enum": ["", "requested", "promoted", "declined", "vetoed", "revoked"]},
            "what was chosen",
        ),
        Field("decision_id", TEXT, "the decision that chose it"),
        Field("reason", TEXT, "one line for a person"),
    ),
)

SENT = (
    need("id", TEXT, "a UUID of version 7; the name of its file in inbox/"),
    need(
        "kind",
        one_of(DecisionKind, "unreadable"),
        "what is wanted (`unreadable`: a file that was no decision)",
    ),
    Field("who", TEXT, "KDA_USER, git's user.name, or the login"),
    Field("via", TEXT, "ui, cli, mcp or worker"),
    Field("target", OBJECT, "gate, plan_rev, cand, question or claim that it is about"),
    Field("expect", OBJECT, "what the person saw: plan_sha, or eval and incumbent, or gate_seq (R4)"),
    Field("reason", TEXT, "why, in the person's words"),
    Field("text", TEXT, "what to say: a steering note, an answer, a change request"),
    Field("lines", OBJECTS, "comments on a plan: {rev, item, line, quote, text}"),
    Field("amount", {"type": ["object", "null"]}, "{axis, value} of a budget"),
)
INBOX = Kind(
    "inbox",
    "A decision on its way: `inbox/<id>.json`, one object a file, mode 0660, put in place by a hard link.",
    (need("v", {"const": 1}, "version of the format"), *SENT, need("t", TIME, "when it was sent")),
)
DECISION = Kind(
    "decision",
    "What became of a decision: a line of decisions.jsonl, and `decision` in a journal line. "
    "`decision` as a text is only its id.",
    (
        *SENT,
        need(
            "by", {"enum": ["person", "rule"]}, "who chose: a person, or a rule that the contract wrote down"
        ),
        Field("sent", TIME, "when it was sent"),
        Field("outcome", one_of(Outcome, ""), "what became of it"),
        Field("why", TEXT, "why it was refused, superseded or moot"),
        Field("uid", {"type": ["integer", "null"]}, "owner of the file in the inbox"),
        Field("rule", {"type": ["object", "null"]}, "{contract_key, numbers} of the rule that chose"),
        Field("override", TEXTS, "gates that a person overrode"),
        Field("effects", {"type": "array", "items": COUNT}, "seq of the journal lines that followed"),
    ),
)

TRANSCRIPT = Kind(
    "transcript",
    "A finished block of what was said or done: a line of `runs/<run>/transcript.jsonl`.",
    (
        need(
            "kind",
            {
                "enum": [
                    "user",
                    "text",
                    "thinking",
                    "tool_call",
                    "tool_result",
                    "steer",
                    "question",
                    "answer",
                    "notice",
                    "usage",
                ],
            },
            "what it is",
        ),
        LINK,
        Field("text", TEXT, "what was said; with `blob` its beginning"),
        Field("blob", SHA, "SHA-256 of the whole text, where it is longer than 48 KB"),
        Field("iter", COUNT, "iteration"),
        Field("talk", TEXT, "conversation: draft, plan-rN, iterate-N"),
        Field("turn", COUNT, "turn of the model"),
        Field("msg", TEXT, "message id"),
        Field("block", COUNT, "place in the message"),
        Field("call", TEXT, "id that joins tool_call and tool_result"),
        Field("tool", TEXT, "name of the tool"),
        Field("args", ANY, "its arguments"),
        Field("is_error", FLAG, "the tool failed"),
        Field("partial", FLAG, "the stream was cut off"),
        Field("dur_s", NUMBER, "seconds"),
        Field("claim", TEXT, "claim it belongs to"),
        Field("cand", TEXT, "candidate"),
        Field("item", TEXT, "plan item"),
        Field("model", TEXT, "model"),
        Field("stop_reason", TEXT, "why the model stopped"),
        Field("usage", {"type": ["object", "null"]}, "tokens: {in, out, cache_write, cache_read}"),
        Field("usd", NUMBER, "cost"),
        Field("cache_miss", TEXT, "why the prompt cache missed"),
        BLOBS,
    ),
)

LIVE = Kind(
    "live",
    "What goes on this second: `runs/<run>/live.json`, renamed into place. No record: not covered by `kda verify`.",
    (
        Field("t", TIME, "when it was written"),
        Field("pid", COUNT, "the worker"),
        Field("claim", TEXT, "running claim"),
        Field("op", TEXT, "its kind of work"),
        Field("cand", TEXT, "its candidate"),
        Field("stage", TEXT, "stage of the evaluation"),
        Field("fraction", NUMBER, "of the whole evaluation, 0 to 1"),
        Field("workload", TEXT, "workload"),
        Field("streaming", TEXT, "the block that is being produced"),
        Field("clocks", OBJECT, "clocks of the device"),
        Field("foreign", {"type": "array", "items": COUNT}, "pids of others on the device"),
        Field("waiting", TEXT, "what the worker waits for"),
        Field("waiting_since", TIME, "since when"),
    ),
)

COLUMNS: Mapping[str, str] = {
    "seq": "of the journal line that brought the row",
    "t": "of that line",
    "run": "run",
    "eval": "claim of the evaluation",
    "attempt": "its attempt",
    "candidate": "candidate that was evaluated",
    "workload": "workload",
    "arm": "whose time this is: the candidate, the incumbent or the baseline",
    "opponent": "what the ratio compares with",
    "protocol": "how it was measured",
    "device": "where",
    "trust": "how far the evidence can be trusted",
    "n": "samples",
    "min_us": "fastest sample",
    "median_us": "median",
    "p95_us": "95th percentile",
    "iqr_us": "distance of the quartiles",
    "ratio": "opponent's time over the candidate's, from paired samples",
    "ratio_lo": "lower end of its interval",
    "ratio_hi": "upper end",
    "floor_us": "speed of light",
    "aa_spread": "how far two equal arms differed",
    "clock_mhz": "clock while measuring",
    "foreign": "pids of others on the device, by spaces",
    "admissible": "1: may decide; 0: may not, `why` says it; empty: not judged",
    "why": "why not",
    "samples": "file of raw samples in the run's folder",
    "sha12": "beginning of that file's SHA-256",
    "end": "always `.`; a row without it was torn",
}


def event_schema(kind: Kind) -> dict[str, Any]:
    """The schema of a journal line of this kind."""
    schema = kind.json_schema(EVENT_ENVELOPE)
    schema["properties"]["kind"] = {"const": kind.name}
    schema["properties"]["candidate"] = {"$ref": "#/$defs/candidate"}
    schema["properties"]["decision"] = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/decision"}]}
    if kind.name in ("candidate", "decision"):
        schema["required"].append(kind.name)
    return schema


def schemas() -> dict[str, Any]:
    """One JSON Schema document; ``$defs`` has every record: lines of ledgers, inbox and live files, events."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {
            "candidate": CANDIDATE.json_schema(),
            "decision": DECISION.json_schema(),
            "candidates.jsonl": CANDIDATE.json_schema(STAMP),
            "decisions.jsonl": DECISION.json_schema(STAMP),
            "transcript.jsonl": TRANSCRIPT.json_schema(STAMP),
            "inbox": INBOX.json_schema(),
            "live.json": LIVE.json_schema(),
            **{f"events.jsonl/{kind.name}": event_schema(kind) for kind in EVENTS},
        },
    }
