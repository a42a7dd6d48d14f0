"""A decision on its way: into the inbox, applied at once where no worker is alive, and what became of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from kda_tui.cli.entry import NO
from kda_tui.cli.output import print_json, say
from kda_tui.record.paths import Workspace
from kda_tui.record.records import Decision, to_line
from kda_tui.text import UserError

Command = TypeVar("Command", bound=Callable[..., Any])
ANSWER_IS_NO = frozenset({"refused", "superseded"})


def decision_options(command: Command) -> Command:
    """Adds ``--reason``, ``--wait`` and ``--json``, which every decision has."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the decision and its outcome as JSON."),
        click.option(
            "--wait",
            type=click.FloatRange(min=0),
            default=10.0,
            show_default=True,
            help="Seconds to wait for the worker's answer.",
        ),
        click.option("-m", "--reason", default="", help="Why; recorded with the decision."),
    ):
        command = option(command)
    return command


def deliver(ws: Workspace, decision: Decision, wait: float, as_json: bool) -> int:
    """Send a decision, print what became of it, and return the exit code."""
    from kda_tui.record.inbox import send

    if not ws.run_names():
        raise UserError(f"{ws.root}: there is no run yet; start one with kda run {ws.root}")
    sent = send(ws, decision)
    answer = _await_answer(ws, sent, wait)
    if as_json:
        line = to_line(answer or sent)
        print_json({**line, "outcome": answer.outcome if answer else "sent"})
    else:
        say(_in_words(sent, answer, wait))
    return NO if answer is not None and answer.outcome in ANSWER_IS_NO else 0


def _await_answer(ws: Workspace, sent: Decision, wait: float) -> Decision | None:
    """The decision as it stands in decisions.jsonl, or None when nobody has taken it in time."""
    from kda_tui.record.lock import LockHeld, probe
    from kda_tui.record.reader import Reader

    reader = Reader(ws.root, read_only=True)
    snapshot = reader.settle()
    deadline = time.monotonic() + wait
    while True:
        found = next((d for d in reversed(snapshot.decisions) if d.id == sent.id), None)
        if found is not None:
            return found
        if probe(ws)[0] in ("none", "free"):
            from kda_tui.worker.offline import apply_pending

            try:
                applied = apply_pending(ws)
            except LockHeld:
                applied = []  # a worker has just started; it will answer
            found = next((d for d in applied if d.id == sent.id), None)
            if found is not None:
                return found
        if time.monotonic() >= deadline:
            return None
        time.sleep(0.1)
        snapshot = reader.poll() or snapshot


def _in_words(sent: Decision, answer: Decision | None, wait: float) -> str:
    what = describe(sent.kind, sent.target)
    if answer is None:
        return f"{what}: sent; no answer within {wait:g} s, kda status shows it as pending"
    return f"{what}: {answer.outcome}" + (f"; {answer.why}" if answer.why else "")


def describe(kind: str, target: Mapping[str, Any]) -> str:
    """A decision in words: ``veto c0003``, ``approve plan r2``."""
    words = kind.replace("_", " ")
    rev = target.get("plan_rev")
    if rev is not None:
        return f"{words} r{rev}"
    subject = target.get("cand") or target.get("question") or target.get("claim") or target.get("gate") or ""
    return f"{words} {subject}".rstrip()
