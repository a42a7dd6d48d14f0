"""One run's journal, folded: phase, hold, gates, plan revisions, claims, budget. RECORD's kinds, one method each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kda_tui.record.snapshot import (
    BudgetLine,
    Claim,
    Evaluation,
    Gate,
    Incumbent,
    PlanItem,
    PlanRevision,
    Question,
    Review,
    RunInfo,
)
from kda_tui.record.typed import mapping, number, text, texts, whole

Line = Mapping[str, Any]

EVALUATIONS = frozenset({"compile", "evaluate", "confirm", "profile"})  # ops whose results are evaluations
DRAFT = "docs/draft.md"
_ENVELOPE = ("v", "seq", "t", "run", "kind", "link")
_CLAIM = frozenset(
    (*_ENVELOPE, "claim", "op", "key", "cand", "opponent", "item", "attempt", "paid", "est_usd")
) | {"pgid", "start_ticks", "candidate"}
_RUN = frozenset((*_ENVELOPE, "parent_run", "contract_sha", "agent", "model", "device", "seed_commit")) | {
    "alpha",
    "host",
    "pid",
}
# What an evaluation does not keep in ``extra``.
RESULT_KEYS = frozenset(
    (*_ENVELOPE, "candidate", "decision", "rows", "claim", "usd", "tokens", *Evaluation.__dataclass_fields__)
)


@dataclass(slots=True)
class RunFold:
    """Everything one events.jsonl says, as it is being read. ``changed`` is set by whatever changes it."""

    name: str
    info: RunInfo
    phase: str = ""
    phase_since: str = ""
    phase_why: str = ""
    hold: str = ""
    hold_since: str = ""
    hold_why: str = ""
    gates: dict[str, Gate] = field(default_factory=dict)  # every one that was opened
    questions: dict[str, Question] = field(default_factory=dict)
    revisions: dict[int, PlanRevision] = field(default_factory=dict)
    item_states: dict[str, str] = field(default_factory=dict)
    claims: dict[str, Line] = field(default_factory=dict)  # those without a result
    steer_seen: dict[str, int] = field(default_factory=dict)  # decision -> turn
    budget: dict[str, BudgetLine] = field(default_factory=dict)
    used: dict[str, float] = field(default_factory=dict)  # as the newest checkpoint has it
    usd: float = 0.0
    turns: int = 0
    tokens: dict[str, int] = field(default_factory=dict)
    draft_sha: str = ""
    head: str = ""
    selftest: Mapping[str, Any] | None = None
    events: int = 0
    newest: str = ""  # time of the newest line
    evaluations: dict[str, Evaluation] = field(default_factory=dict)  # new ones, until taken away
    incumbents: list[Incumbent] = field(default_factory=list)
    reviews: list[Review] = field(default_factory=list)

    def take(self, line: Line, rest: Line) -> bool:
        """Fold one event; ``rest`` is the ``extra`` of its evaluation. False if its kind is not known."""
        self.events += 1
        t = text(line.get("t"))
        self.newest = max(self.newest, t)
        files = line.get("files")
        if isinstance(files, dict) and DRAFT in files:
            self.draft_sha = text(files[DRAFT])
        kind = text(line.get("kind"))
        if kind == "result":
            self._result(line, t, rest)
            return True
        handler = _KINDS.get(kind)
        if handler is not None:
            handler(self, line, t)
        return handler is not None or kind in _ELSEWHERE

    # --- the run itself ---------------------------------------------------------------------------

    def _run_started(self, line: Line, t: str) -> None:
        """The first line of a run, or of a process that goes on with it: what is fixed stays as it was."""
        self.info = replace(
            self.info,
            agent=text(line.get("agent")) or self.info.agent,
            model=text(line.get("model")) or self.info.model,
            contract_sha=text(line.get("contract_sha")) or self.info.contract_sha,
            started=self.info.started or t,
            ended="",
            end_why="",
            parent_run=text(line.get("parent_run")) or self.info.parent_run,
            device=mapping(line.get("device")) or self.info.device,
            host=text(line.get("host")) or self.info.host,
            pid=whole(line.get("pid")),
            seed_commit=text(line.get("seed_commit")) or self.info.seed_commit,
            alpha=number(line.get("alpha")) or self.info.alpha,
            extra={**self.info.extra, **{k: v for k, v in line.items() if k not in _RUN}},
        )
        if self.phase in ("", "ended"):
            self._go_to("draft", t, "")

    def _run_ended(self, line: Line, t: str) -> None:
        self.info = replace(self.info, ended=t, end_why=text(line.get("why")))
        if self.phase != "ended":
            self._go_to("ended", t, text(line.get("why")))

    def _phase(self, line: Line, t: str) -> None:
        self._go_to(text(line.get("to")), t, text(line.get("why")))

    def _go_to(self, phase: str, t: str, why: str) -> None:
        self.phase, self.phase_since, self.phase_why = phase, t, why

    def _hold(self, line: Line, t: str) -> None:
        if line.get("on"):
            self.hold, self.hold_since = text(line.get("why")) or "person", t
            self.hold_why = text(line.get("text"))
        else:
            self.hold = self.hold_since = self.hold_why = ""

    # --- plan, gates, questions -------------------------------------------------------------------

    def _plan(self, line: Line, t: str) -> None:
        rev = whole(line.get("rev")) or 0
        listed = line.get("items")
        items = tuple(
            PlanItem(text(item.get("id")), text(item.get("title")), text(item.get("state")) or "open")
            for item in (listed if isinstance(listed, list) else ())
            if isinstance(item, dict)
        )
        self.revisions[rev] = PlanRevision(
            rev=rev,
            file=text(line.get("file")),
            sha=text(line.get("sha")),
            author=text(line.get("author")),
            t=t,
            answers=texts(line.get("answers")),
            items=items,
        )

    def _item(self, line: Line, t: str) -> None:
        self.item_states[text(line.get("id"))] = text(line.get("state"))

    def _gate_open(self, line: Line, t: str) -> None:
        gate = text(line.get("gate"))
        self.gates[gate] = Gate(
            id=gate,
            kind=text(line.get("gate_kind")),
            target=mapping(line.get("target")),
            sha=text(line.get("sha")),
            blocking=bool(line.get("blocking")),
            default=text(line.get("default")),
            timeout_s=number(line.get("timeout_s")),
            opened=t,
            seq=whole(line.get("seq")) or 0,
        )

    def _gate_close(self, line: Line, t: str) -> None:
        gate = text(line.get("gate"))
        opened = self.gates.get(gate) or Gate(gate, text(line.get("gate_kind")), mapping(line.get("target")))
        self.gates[gate] = replace(
            opened, decision=text(line.get("decision")), outcome=text(line.get("outcome")) or "closed"
        )

    def _question(self, line: Line, t: str) -> None:
        ident = text(line.get("q"))
        self.questions[ident] = Question(ident, text(line.get("text")), texts(line.get("options")), t)

    def _steer_seen(self, line: Line, t: str) -> None:
        self.steer_seen.setdefault(text(line.get("decision")), whole(line.get("turn")) or 0)

    def _review(self, line: Line, t: str) -> None:
        listed = line.get("findings")
        self.reviews.append(
            Review(
                about=text(line.get("about")),
                verdict=text(line.get("verdict")) or "none",
                summary=text(line.get("summary")),
                findings=tuple(mapping(f) for f in (listed if isinstance(listed, list) else ())),
                target=mapping(line.get("target")),
                file=text(line.get("file")),
                model=text(line.get("model")),
                t=t,
            )
        )

    # --- work -------------------------------------------------------------------------------------

    def _claim(self, line: Line, t: str) -> None:
        self.claims[text(line.get("claim"))] = line

    def open_claims(self) -> tuple[Claim, ...]:
        """Work that was started and has no result, oldest first."""
        return tuple(_claim_of(line, self.name) for line in self.claims.values())

    def _result(self, line: Line, t: str, rest: Line) -> None:
        ident = text(line.get("claim"))
        opened: Line = self.claims.pop(ident, {})
        op = text(line.get("op")) or text(opened.get("op"))
        self.usd += number(line.get("usd")) or 0.0
        if op == "turn":
            self.turns += 1
        for name, count in mapping(line.get("tokens")).items():
            self.tokens[name] = self.tokens.get(name, 0) + (whole(count) or 0)
        if op not in EVALUATIONS:
            return
        self.evaluations[ident] = Evaluation(
            id=ident,
            op=op,
            cand=text(line.get("cand")) or text(opened.get("cand")),
            outcome=text(line.get("outcome")),
            seq=whole(line.get("seq")) or 0,
            t=t,
            run=self.name,
            validity=text(line.get("validity")),
            speed=text(line.get("speed")),
            stage_reached=text(line.get("stage_reached")),
            gates=mapping(line.get("gates")),
            opponent=text(line.get("opponent")) or text(opened.get("opponent")),
            contract_sha=text(line.get("contract_sha")),
            ratio=number(line.get("ratio")),
            lo=number(line.get("lo")),
            hi=number(line.get("hi")),
            alpha_spent=number(line.get("alpha_spent")),
            aa=number(line.get("aa")),
            device=text(line.get("device")),
            trust=text(line.get("trust")),
            dur_s=number(line.get("dur_s")),
            extra=rest,
        )

    def _incumbent(self, line: Line, t: str) -> None:
        self.incumbents.append(
            Incumbent(
                cand=text(line.get("cand")) or "baseline",
                prev=text(line.get("prev")),
                why=text(line.get("why")),
                decision=text(line.get("decision")),
                eval=text(line.get("eval")),
                seq=whole(line.get("seq")) or 0,
                t=t,
            )
        )

    def _budget(self, line: Line, t: str) -> None:
        axis = text(line.get("axis"))
        self.budget[axis] = BudgetLine(
            axis, number(line.get("used")) or 0.0, number(line.get("limit")), text(line.get("level")) or "ok"
        )

    def _checkpoint(self, line: Line, t: str) -> None:
        self.head = text(line.get("head"))
        for axis, found in mapping(mapping(line.get("summary")).get("budget")).items():
            used = number(mapping(found).get("used"))
            if used is not None:
                self.used[axis] = used

    def _selftest(self, line: Line, t: str) -> None:
        self.selftest = {key: value for key, value in line.items() if key not in _ENVELOPE}


def _claim_of(line: Line, run: str) -> Claim:
    return Claim(
        id=text(line.get("claim")),
        op=text(line.get("op")),
        cand=text(line.get("cand")),
        key=text(line.get("key")),
        t=text(line.get("t")),
        seq=whole(line.get("seq")) or 0,
        run=run,
        opponent=text(line.get("opponent")),
        item=text(line.get("item")),
        attempt=whole(line.get("attempt")) or 1,
        paid=bool(line.get("paid")),
        est_usd=number(line.get("est_usd")) or 0.0,
        pgid=whole(line.get("pgid")),
        start_ticks=whole(line.get("start_ticks")),
        extra={key: value for key, value in line.items() if key not in _CLAIM},
    )


_KINDS: Mapping[str, Callable[[RunFold, Line, str], None]] = {
    "run_started": RunFold._run_started,
    "run_ended": RunFold._run_ended,
    "phase": RunFold._phase,
    "hold": RunFold._hold,
    "plan": RunFold._plan,
    "item": RunFold._item,
    "gate_open": RunFold._gate_open,
    "gate_close": RunFold._gate_close,
    "question": RunFold._question,
    "steer_seen": RunFold._steer_seen,
    "review": RunFold._review,
    "claim": RunFold._claim,
    "incumbent": RunFold._incumbent,
    "budget": RunFold._budget,
    "checkpoint": RunFold._checkpoint,
    "selftest": RunFold._selftest,
}
_ELSEWHERE = frozenset({"candidate", "decision", "recovered"})  # what they bring stands in other ledgers
