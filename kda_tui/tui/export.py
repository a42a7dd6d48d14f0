"""A screen as SVG or text, from the running app or without a terminal.

``python -m kda_tui.tui.export WORKSPACE --size 120x40 --out screen.svg`` draws a workspace as it is now.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kda_tui.text import UserError

if TYPE_CHECKING:
    from textual.app import App

SETTLE_S = 20.0  # longest wait for a workspace to be read


def screen_text(app: App[int]) -> str:
    """The characters on the screen, trailing blanks removed."""
    rows = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in row).rstrip() for row in rows) + "\n"


def screen_svg(app: App[int]) -> str:
    """The screen as SVG."""
    return app.export_screenshot(title=str(app.title), simplify=True)


async def render(
    root: Path, size: tuple[int, int], keys: Sequence[str] = (), theme: str = "", read_only: bool = True
) -> tuple[str, str]:
    """(SVG, text) of a workspace at a size, after some keys, without a terminal."""
    from kda_tui.tui.app import KdaApp
    from kda_tui.tui.screens.workspace import WorkspaceScreen

    app = KdaApp(root, read_only)
    if theme:
        app.use_theme(theme)
    async with app.run_test(size=size) as pilot:
        for _ in range(int(SETTLE_S / 0.1)):
            await pilot.pause(0.1)
            screen = app.screen
            snapshot = screen.snapshot if isinstance(screen, WorkspaceScreen) else None
            if snapshot is not None and "loading" not in snapshot.extra:
                break
        await pilot.pause(0.3)
        if keys:
            await pilot.press(*keys)
            await pilot.pause(0.3)
        return screen_svg(app), screen_text(app)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m kda_tui.tui.export", description="Draw a screen without a terminal."
    )
    parser.add_argument("workspace", type=Path)
    parser.add_argument("--size", default="120x40", help="columns x rows")
    parser.add_argument("--theme", default="")
    parser.add_argument("--keys", default="", help="keys to press first, separated by commas")
    parser.add_argument("--out", type=Path, help="a .svg or .txt file; default: text to stdout")
    options = parser.parse_args(arguments)
    match = re.fullmatch(r"(\d{2,3})x(\d{2,3})", options.size)
    if match is None:
        parser.error("--size is columns x rows, for example 120x40")
    size = (int(match[1]), int(match[2]))
    try:
        svg, text = asyncio.run(
            render(options.workspace, size, [k for k in options.keys.split(",") if k], options.theme)
        )
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    if options.out is None:
        sys.stdout.write(text)
    else:
        options.out.write_text(svg if options.out.suffix == ".svg" else text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
