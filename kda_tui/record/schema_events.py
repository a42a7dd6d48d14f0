"""Every kind of journal line: `runs/<run>/events.jsonl`."""

from __future__ import annotations

from kda_tui.record.records import GateKind, HoldCause, Phase, Speed, Stage, Validity
from kda_tui.record.schema_fields import (
    ANY,
    COUNT,
    FLAG,
    NUMBER,
    OBJECT,
    OBJECTS,
    SHA,
    TEXT,
    TEXTS,
    Field,
    Kind,
    need,
    one_of,
)

_OPS = ["turn", "compile", "evaluate", "confirm", "profile", "autotune", "review", "promote"]
_CLAIM_ID = need("claim", TEXT, "id of the claim, unique in the workspace")
_WHY = Field("why", TEXT, "why")

EVENTS: tuple[Kind, ...] = (
    Kind(
        "run_started",
        "A run begins. The copies that the hashes speak of are in `runs/<run>/`.",
        (
            need("contract_sha", SHA, "contract.toml"),
            need("agent", TEXT, "agent"),
            Field("reference_sha", SHA, "reference.py"),
            Field(
                "baseline_sha", SHA, "baseline/: SHA-256 of the sorted lines `<sha256>  <path>` of its files"
            ),
            Field("parent_run", TEXT, "the run before it"),
            Field("model", TEXT, "model"),
            Field("prompts_sha", TEXT, "prompt templates"),
            Field("skills", {"type": "array"}, "skills and their pins"),
            Field("versions", OBJECT, "versions of programs"),
            Field("device", OBJECT, "uuid, driver, cc"),
            Field("seed_commit", SHA, "SHA-256 of the secret that seeds hidden inputs"),
            Field("alpha", NUMBER, "error probability that the campaign may spend"),
            Field("host", TEXT, "host"),
            Field("boot_id", TEXT, "boot of the host"),
            Field("pid", COUNT, "the worker"),
            Field("start_ticks", {"type": ["integer", "null"]}, "when the worker's process started"),
        ),
    ),
    Kind(
        "phase",
        "The run enters a phase.",
        (Field("from", one_of(Phase, ""), "before"), need("to", one_of(Phase), "after"), _WHY),
    ),
    Kind(
        "hold",
        "Work is held, or goes on.",
        (
            need("on", FLAG, "held or not"),
            need("why", one_of(HoldCause), "the cause"),
            Field("text", TEXT, "in words"),
            Field("until", TEXT, "when it ends by itself (an API that asked to wait)"),
            Field("decision", ANY, "the decision that wanted it"),
        ),
    ),
    Kind(
        "plan",
        "A revision of the plan. The file is immutable.",
        (
            need("rev", COUNT, "revision"),
            need("file", TEXT, "docs/plans/rNNN.md"),
            need("sha", SHA, "its SHA-256"),
            Field("answers", TEXTS, "decisions that it responds to"),
            Field("author", TEXT, "author"),
            Field("items", OBJECTS, "{id, title}"),
        ),
    ),
    Kind(
        "item",
        "The state of a plan item.",
        (
            need("id", TEXT, "item"),
            need("state", {"enum": ["open", "doing", "done", "dropped"]}, "its state"),
        ),
    ),
    Kind(
        "gate_open",
        "Something waits for a decision.",
        (
            need("gate", TEXT, "id of the gate"),
            need("gate_kind", one_of(GateKind), "what it is about (`kind` is the event's)"),
            Field("target", OBJECT, "plan_rev, cand and eval, question, axis"),
            Field("sha", TEXT, "SHA-256 of what is to be approved"),
            Field("blocking", FLAG, "whether the run waits for it"),
            Field("default", TEXT, "what happens at the timeout"),
            Field("timeout_s", NUMBER, "seconds"),
        ),
    ),
    Kind(
        "gate_close",
        "A gate is decided, or nobody needs to decide it any more.",
        (
            need("gate", TEXT, "id of the gate"),
            need("outcome", TEXT, "approved, declined, changes, ..."),
            Field("gate_kind", one_of(GateKind), "what it was about"),
            Field("decision", ANY, "the decision that closed it"),
        ),
    ),
    Kind(
        "question",
        "The agent asks.",
        (
            need("q", TEXT, "id"),
            need("text", TEXT, "the question"),
            Field("options", TEXTS, "answers it offers"),
        ),
    ),
    Kind(
        "steer_seen",
        "The agent was given a steering note.",
        (need("decision", TEXT, "the note's decision"), need("turn", COUNT, "when")),
    ),
    Kind(
        "review",
        "An independent reviewer's word on a plan or a promotion request. Advice to the person at the gate.",
        (
            need("subject", TEXT, "plan:REV, or promotion:CAND:EVAL"),
            need("about", {"enum": ["plan", "promotion"]}, "what kind of subject"),
            need(
                "verdict", {"enum": ["accept", "revise", "reject", "none"]}, "its word; none: no opinion came"
            ),
            Field("target", OBJECT, "plan_rev, or cand and eval"),
            Field("review", TEXT, "number of the review in the workspace"),
            Field("summary", TEXT, "in a sentence; with none: why"),
            Field("findings", OBJECTS, "{severity, text, evidence}"),
            Field("model", TEXT, "model"),
            Field("file", TEXT, "docs/reviews/NNN.md"),
            Field("sha", SHA, "its SHA-256"),
        ),
    ),
    Kind(
        "claim",
        "Work begins. A claim without a result was cut off (R9).",
        (
            _CLAIM_ID,
            need("op", {"enum": _OPS}, "what is done"),
            Field("key", TEXT, "equal keys are the same work"),
            Field("cand", TEXT, "candidate"),
            Field("sha", TEXT, "its SHA-256"),
            Field("opponent", TEXT, "incumbent at this moment"),
            Field("plan_rev", {"type": ["integer", "null"]}, "plan in force"),
            Field("item", TEXT, "plan item"),
            Field("attempt", COUNT, "from 1"),
            Field("paid", FLAG, "whether it costs money"),
            Field("est_usd", NUMBER, "how much, estimated"),
            Field("model", TEXT, "model that is paid"),
            Field("pgid", {"type": ["integer", "null"]}, "process group that does it"),
            Field("start_ticks", {"type": ["integer", "null"]}, "when that process started"),
        ),
    ),
    Kind(
        "result",
        "Work ended. Its benchmark rows become lines of benchmark.csv.",
        (
            _CLAIM_ID,
            need("outcome", {"enum": ["ok", "cancelled", "infrastructure_error"]}, "how"),
            Field("op", TEXT, "the claim's"),
            Field("cand", TEXT, "candidate"),
            Field("attempt", COUNT, "the claim's"),
            Field("validity", one_of(Validity, ""), "whether it may be compared"),
            Field("speed", one_of(Speed, ""), "speed"),
            Field("stage_reached", one_of(Stage, ""), "last stage"),
            Field("reason", TEXT, "one line for a person"),
            Field("gates", OBJECT, "name -> passed, failed, not_evaluated"),
            Field("opponent", TEXT, "what it was measured against"),
            Field("contract_sha", TEXT, "contract in force"),
            Field("ratio", NUMBER, "over all workloads"),
            Field("lo", NUMBER, "lower end of its interval"),
            Field("hi", NUMBER, "upper end"),
            Field("alpha_spent", NUMBER, "confirm only"),
            Field("aa", NUMBER, "A/A spread"),
            Field("device", {"type": ["string", "object"]}, "where it ran"),
            Field("trust", TEXT, "how far the evidence can be trusted"),
            Field("compile", OBJECT, "the compiler's report"),
            Field("rows", OBJECTS, "cells of benchmark.csv"),
            Field("rows_blob", SHA, "the rows as a JSON array in a blob, where the line would be too long"),
            Field("samples", OBJECTS, "{path in the run's folder, sha, bytes}"),
            Field("usd", NUMBER, "cost"),
            Field("tokens", OBJECT, "tokens by kind: in, out, cache_write, cache_read"),
            Field("stop_reason", TEXT, "why the model stopped"),
            Field("dur_s", NUMBER, "seconds"),
        ),
    ),
    Kind(
        "incumbent",
        "Another candidate is the best promoted one. outputs/ follows it.",
        (
            need("cand", TEXT, "candidate, or baseline"),
            need("why", {"enum": ["promoted", "revoked"]}, "why"),
            Field("prev", TEXT, "the one before"),
            Field("decision", ANY, "the decision"),
            Field("eval", TEXT, "the confirm it rests on"),
        ),
    ),
    Kind(
        "budget",
        "Use or limit of a budget changed its level.",
        (
            need("axis", {"enum": ["candidates", "hours", "usd"]}, "what is counted"),
            Field("used", NUMBER, "used"),
            Field("limit", NUMBER, "limit; null: none"),
            Field("level", {"enum": ["ok", "notice", "reached"]}, "80 % is a notice, 100 % holds"),
        ),
    ),
    Kind("candidate", "A candidate changed without an evaluation; `candidate` has its line.", ()),
    Kind(
        "decision",
        "What became of a decision; `decision` has its line.",
        (Field("todo", OBJECTS, "the lines that follow from it; written now, carried out at once"),),
    ),
    Kind(
        "recovered",
        "A crash had cut a line short; it was closed and does not count.",
        (
            need("ledger", TEXT, "path in the workspace"),
            need("offset", COUNT, "where the line begins"),
            need("bytes", COUNT, "what stood there"),
        ),
    ),
    Kind(
        "checkpoint",
        "One hash over everything that the ledgers held at this moment.",
        (
            need("prev_head", SHA, "head of the checkpoint before it, over all runs; '' for the first"),
            need(
                "head",
                SHA,
                "SHA-256 of this line without `head` as canonical JSON: keys sorted, no spaces, ASCII",
            ),
            need("ledgers", OBJECT, "path -> [bytes, SHA-256 of those first bytes]"),
            need("summary", OBJECT, "phase, hold, gates, best, counts, budget"),
        ),
    ),
    Kind("selftest", "The judge was tried on mutants that it must reject.", ()),
    Kind(
        "run_ended",
        "A run is over.",
        (
            need("why", TEXT, "why"),
            Field("by", TEXT, "who"),
            Field("seed", TEXT, "the secret that run_started committed to"),
        ),
    ),
)
