"""Decisions on the run as a whole: hold, end, notes, answers, budget, a person's own candidates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from kda_tui.cli.deliver import decision_options, deliver
from kda_tui.cli.target import find_candidate, find_workspace, read, workspace_argument, workspace_option
from kda_tui.text import UserError

SOURCE_SUFFIXES = (".cu", ".cuh", ".h", ".hpp", ".ptx", ".toml", ".md")


def _on_run(kind: str, help: str) -> click.Command:
    """A command that sends one decision about the run."""

    @click.command(kind, help=help)
    @workspace_argument
    @decision_options
    def command(workspace: Path | None, reason: str, wait: float, as_json: bool) -> int:
        from kda_tui.record.inbox import new_decision

        return deliver(find_workspace(workspace), new_decision(kind, reason=reason), wait, as_json)

    return command


pause_command = _on_run("pause", "Hold the run: what is measured now is finished, nothing new starts.")
resume_command = _on_run(
    "resume", "Go on after a hold. (A worker that is gone is started by kda run --resume.)"
)


@click.command("end")
@workspace_argument
@click.option("--now", is_flag=True, help="Kill what is running: it gets no verdict.")
@decision_options
def end_command(workspace: Path | None, now: bool, reason: str, wait: float, as_json: bool) -> int:
    """End the run, after what is running now."""
    from kda_tui.record.inbox import new_decision

    decision = new_decision("end_now" if now else "end_after", reason=reason)
    return deliver(find_workspace(workspace), decision, wait, as_json)


@click.command("steer")
@click.argument("text")
@workspace_option
@decision_options
def steer_command(text: str, workspace: Path | None, reason: str, wait: float, as_json: bool) -> int:
    """Give the agent a note. It stays pinned until the agent has seen it."""
    from kda_tui.record.inbox import new_decision

    return deliver(find_workspace(workspace), new_decision("steer", text=text, reason=reason), wait, as_json)


@click.command("answer")
@click.argument("text")
@click.option("-q", "--question", default="", help="Which question; without it the only one that waits.")
@workspace_option
@decision_options
def answer_command(
    text: str, question: str, workspace: Path | None, reason: str, wait: float, as_json: bool
) -> int:
    """Answer the agent's question."""
    from kda_tui.record.inbox import new_decision

    ws = find_workspace(workspace)
    waiting = [g for g in read(ws).gates if g.kind == "question"]
    if not question and len(waiting) != 1:
        names = ", ".join(str(g.target.get("question") or g.id) for g in waiting)
        raise UserError(
            f"{len(waiting)} questions wait; name one with -q: {names}" if waiting else "no question waits"
        )
    target = {"question": question or str(waiting[0].target.get("question") or waiting[0].id)}
    return deliver(ws, new_decision("answer", target=target, text=text, reason=reason), wait, as_json)


@click.command("budget")
@click.argument("axis", type=click.Choice(["candidates", "hours", "usd"]))
@click.argument("value", type=click.FloatRange(min=0))
@workspace_option
@decision_options
def budget_command(
    axis: str, value: float, workspace: Path | None, reason: str, wait: float, as_json: bool
) -> int:
    """Set the budget of AXIS to VALUE. What was used stays used."""
    from kda_tui.record.inbox import new_decision

    amount = {"axis": axis, "value": int(value) if value.is_integer() else value}
    return deliver(
        find_workspace(workspace), new_decision("set_budget", amount=amount, reason=reason), wait, as_json
    )


@click.command("submit")
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "--from", "origin", default="", help="The candidate that this one comes from: its launch plan is used."
)
@click.option("-t", "--text", default="", help="The hypothesis, in a sentence.")
@workspace_option
@decision_options
def submit_command(
    source: Path, origin: str, text: str, workspace: Path | None, reason: str, wait: float, as_json: bool
) -> int:
    """Submit SOURCE, a kernel file or a folder with kernel.cu and launch.toml, as a candidate of your own."""
    from kda_tui.record.inbox import new_decision

    ws = find_workspace(workspace)
    files = _folder_files(source) if source.is_dir() else {"kernel.cu": _text(source)}
    target = {}
    if origin:
        parent = find_candidate(read(ws), origin)
        target = {"from": parent}
        files.setdefault("launch.toml", _text(ws.candidate(parent) / "launch.toml"))
    if "launch.toml" not in files:
        beside = source.parent / "launch.toml"
        if not beside.is_file():
            raise UserError(
                f"{source}: there is no launch.toml beside it; write one, or take a parent's with --from c0001"
            )
        files["launch.toml"] = _text(beside)
    decision = new_decision("submit", target=target, text=text, reason=reason)
    return deliver(ws, replace(decision, extra={**decision.extra, "files": files}), wait, as_json)


def _folder_files(folder: Path) -> dict[str, str]:
    return {p.name: _text(p) for p in sorted(folder.iterdir()) if p.is_file() and p.suffix in SOURCE_SUFFIXES}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UserError(f"{path}: cannot be read: {reason}") from None
