"""``kda new``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from kda_tui.cli.output import print_json, say, table
from kda_tui.cli.target import json_option
from kda_tui.text import UserError


@click.command("new")
@click.argument("template", required=False)
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option(
    "--from", "kernel", type=click.Path(path_type=Path), help="Draft a workspace from this .cu file."
)
@click.option(
    "--device",
    type=click.Choice(["cpu", "cuda"]),
    default="cpu",
    show_default=True,
    help="The contract to take.",
)
@click.option("--list", "list_them", is_flag=True, help="List the templates.")
@json_option
def new_command(
    template: str | None,
    folder: Path | None,
    kernel: Path | None,
    device: Literal["cpu", "cuda"] | None,
    list_them: bool,
    as_json: bool,
) -> int:
    """Make a workspace FOLDER from TEMPLATE (default: a folder of the template's name), or from a kernel.

    With --from KERNEL.cu the only argument is the folder: contract and launch plan are drafted from the
    kernel's signature, and every place to fill in is marked.
    """
    from kda_tui.record.scaffold import new_from_kernel, new_from_template, templates

    if list_them:
        known = list(templates().values())
        rows = [(info.name, ", ".join(info.devices), info.objective) for info in known]
        print_json(known) if as_json else say(table(rows))
        return 0
    if kernel is not None:
        if folder is not None:
            raise UserError("kda new --from KERNEL.cu takes one folder, and no template")
        root = new_from_kernel(kernel, Path(template or kernel.stem), device or "cpu")
    elif template is None:
        raise UserError(f"name a template ({', '.join(templates())}), or give --from KERNEL.cu")
    else:
        root = new_from_template(template, folder or Path(template), device)
    root = root.absolute()
    if as_json:
        print_json({"workspace": root})
    else:
        say(f"made {root}\nnext: kda contract check {root}, then kda run {root}")
    return 0
