"""``kda`` and ``python -m kda_tui``."""

from __future__ import annotations

import sys


def main() -> None:
    from kda_tui.cli.entry import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
