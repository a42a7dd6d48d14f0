"""The command ``kda`` itself: which commands there are, loaded only when one is called.

``kda --help`` must be instant, so names, sections and one-line helps stand here and no command's module is
imported for them. tests/cli keeps this table and the commands in step.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from kda_tui import __version__


@dataclass(frozen=True, slots=True)
class Entry:
    """A command: the module under ``kda_tui.cli`` that defines it (as ``name`` with ``_``), and its help."""

    module: str
    help: str


SECTIONS: Mapping[str, Mapping[str, Entry]] = {
    "Start": {
        "demo": Entry("demo", "Make a scratch workspace, start a worker on it, open the screen."),
        "new": Entry("workspaces", "Make a workspace from a template or from a kernel."),
        "contract": Entry("contracts", "Check a contract with its self-test, or change it (check, amend)."),
        "run": Entry("running", "Start a worker on a workspace, detached."),
        "prompt": Entry("prompting", "Print a starter prompt for your own coding agent."),
        "mcp": Entry("mcp_server", "Serve a workspace to your own coding agent (MCP over stdio)."),
        "doctor": Entry("doctor", "What this machine has and lacks, and how to mend it."),
    },
    "Look": {
        "open": Entry("running", "Open the screen on a workspace."),
        "status": Entry("looking", "Phase, hold, what waits for you, the best candidate."),
        "list": Entry("looking", "The workspaces under a folder."),
        "watch": Entry("looking", "What happens in a workspace, as plain lines."),
        "verify": Entry("trusting", "Is the record as it was written?"),
        "profile": Entry("reading", "Profile a candidate with Nsight Compute, or read a profile."),
        "skills": Entry("skills", "Skills: list, search, show, pin."),
    },
    "Decide": {
        "approve": Entry("deciding", "Approve what waits: the plan, a promotion, the end."),
        "request-changes": Entry("deciding", "Ask for changes to the plan."),
        "decline": Entry("deciding", "Decline a promotion or the end of the run."),
        "veto": Entry("deciding", "Veto a candidate, running, judged or promoted."),
        "unveto": Entry("deciding", "Withdraw a veto."),
        "promote": Entry("deciding", "Promote a candidate; a confirmation run comes first."),
        "revoke": Entry("deciding", "Take back the promotion of the incumbent."),
        "measure": Entry("deciding", "Have the worker measure a candidate again."),
        "rerun": Entry("deciding", "Run again what died without a result."),
        "abandon": Entry("deciding", "Give up on what died without a result."),
    },
    "Steer": {
        "pause": Entry("steering", "Hold the run: the running work ends, nothing new starts."),
        "resume": Entry("steering", "Go on after a hold."),
        "end": Entry("steering", "End the run."),
        "steer": Entry("steering", "Give the agent a note."),
        "answer": Entry("steering", "Answer the agent's question."),
        "budget": Entry("steering", "Set a budget: candidates, hours or usd."),
        "submit": Entry("steering", "Submit your own kernel as a candidate."),
    },
    "Judge": {
        "eval": Entry("judging", "Evaluate a candidate or a folder here and now, without recording it."),
        "debug": Entry("judging", "Launch a candidate once and look closely; no verdict."),
        "bench": Entry("benching", "Compare this evaluator with others on this GPU."),
        "explain": Entry("judging", "Time a kernel in every usual way and say why the numbers differ."),
        "trust": Entry("trusting", "Allow the reference and baseline of a workspace made elsewhere to run."),
    },
}

ENTRIES: Mapping[str, Entry] = {
    name: entry for section in SECTIONS.values() for name, entry in section.items()
}


class LazyGroup(click.Group):
    """Imports a command's module when the command is called, not when it is listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(ENTRIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = ENTRIES.get(cmd_name)
        if entry is None:
            return None
        module = importlib.import_module(f"kda_tui.cli.{entry.module}")
        command = getattr(module, attribute(cmd_name))
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in ENTRIES and not name.startswith("-"):
            import difflib

            near = difflib.get_close_matches(name, ENTRIES, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise click.UsageError(f"there is no command {name!r}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section, entries in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, entry.help) for name, entry in entries.items()])


def attribute(command: str) -> str:
    """The name that a command has in its module."""
    return command.replace("-", "_") + "_command"


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="kda", message="%(prog)s %(version)s")
@click.option(
    "-C",
    "--workspace",
    type=click.Path(path_type=Path),
    envvar="KDA_WORKSPACE",
    help="The workspace, where a command takes none as an argument. Default: the current folder.",
)
@click.pass_context
def kda(ctx: click.Context, workspace: Path | None) -> None:
    """The terminal cockpit for Kernel Design Agents.

    A worker lets an agent research, write, check and measure CUDA kernels; you approve its plan, veto
    candidates and promote what is faster. `kda demo` shows all of it without a GPU.
    """
    ctx.obj = workspace
