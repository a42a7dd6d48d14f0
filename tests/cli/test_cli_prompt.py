"""The starter prompt for other agents."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kda_tui.cli.commands import kda
from kda_tui.cli.entry import run
from tests.worker.make import CONTRACT, REFERENCE, make_workspace


def test_the_prompt_is_filled_in_and_every_command_in_it_exists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ws = make_workspace(tmp_path / "scale")
    assert run(["prompt", str(ws.root)]) == 0
    said = capsys.readouterr().out
    assert CONTRACT.strip() in said and REFERENCE.strip() in said and str(ws.root) in said
    assert "{{" not in said
    named = {line.split("`kda ")[1].split()[0] for line in said.splitlines() if line.startswith("* `kda ")}
    assert named == {"eval", "submit", "profile", "status", "skills"}
    for name in named:
        assert CliRunner().invoke(kda, [name, "--help"]).exit_code == 0


def test_a_folder_without_a_contract_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["prompt", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
