"""``kda doctor``."""

from __future__ import annotations

import click

from kda_tui.cli.entry import UNAVAILABLE
from kda_tui.cli.output import print_json, say
from kda_tui.cli.target import json_option


@click.command("doctor")
@json_option
def doctor_command(as_json: bool) -> int:
    """What this machine has and lacks, and how to mend it.

    Exit code 3 if something is missing that the cpu device or the screen needs.
    """
    from kda_tui.cli.machine import facts

    found = list(facts())
    if as_json:
        print_json({"facts": found})
    else:
        width = max(len(fact.name) for fact in found)
        for fact in found:
            say(f"{fact.state:<8} {fact.name:<{width}}  {fact.detail}")
            if fact.mend and fact.state != "ok":
                say(f"{'':<8} {'':<{width}}  -> {fact.mend}")
    return UNAVAILABLE if any(fact.needed and fact.state == "missing" for fact in found) else 0
