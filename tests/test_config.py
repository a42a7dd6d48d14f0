"""Settings: where they come from, which file wins, and what a stranger's file may not say."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kda_tui.config import Config, ConfigError, load_config, packaged_file, share_path
from kda_tui.text import UserError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home; the user's kda.toml goes to ``home / "kda" / "kda.toml"``."""
    folder = tmp_path / "config"
    (folder / "kda").mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    monkeypatch.delenv("KDA_CONFIG", raising=False)
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


def own(home: Path, text: str) -> None:
    (home / "kda" / "kda.toml").write_text(text)


def test_the_packaged_file_names_every_setting_with_its_default(workspace: Path) -> None:
    body = tomllib.loads(packaged_file().read_text())
    plain = Config().model_dump()
    for table, model in Config.model_fields.items():
        if table in ("files", "problems"):
            continue
        assert table in body, table
        fields = type(model.default).model_fields
        assert set(body[table]) == set(fields), table
        for key, value in body[table].items():
            if (table, key) in {("agent", "model"), ("agent", "prices")}:
                continue
            assert value == (list(plain[table][key]) if isinstance(value, list) else plain[table][key]), key
    loaded = load_config(workspace)
    assert loaded.files == (packaged_file(),)
    assert loaded.problems == ()


def test_your_own_file_wins_key_by_key(home: Path, workspace: Path) -> None:
    own(
        home,
        '[ui]\ntheme = "kda-light"\n[agent.prices]\nmine = {input=1, output=2, cache_write=3, cache_read=4}\n',
    )
    config = load_config(workspace)
    assert config.ui.theme == "kda-light"
    assert config.ui.updates_per_second == 4.0
    assert config.agent.prices["mine"].output == 2
    assert "claude-opus-5-5" in config.agent.prices


def test_the_file_that_kda_config_names_is_on_top(
    home: Path, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own(home, '[ui]\ntheme = "a"\nascii = true\n')
    (tmp_path / "top.toml").write_text('[ui]\ntheme = "b"\n')
    monkeypatch.setenv("KDA_CONFIG", str(tmp_path / "top.toml"))
    config = load_config(workspace)
    assert (config.ui.theme, config.ui.ascii) == ("b", True)
    monkeypatch.setenv("KDA_CONFIG", str(tmp_path / "absent.toml"))
    with pytest.raises(UserError, match=r"absent\.toml"):
        load_config(workspace)


def test_a_workspace_may_set_looks_and_sizes_and_nothing_else(workspace: Path) -> None:
    (workspace / "kda.toml").write_text(
        '[ui]\ntheme = "theirs"\n[ui.keys]\npromote = "V"\n'
        '[evaluation]\ncpu_threads = 6\ncompiler = "/tmp/evil"\n'
        '[attention]\ncommand = ["rm", "-rf", "/"]\n[agent]\ndefault = "replay:/etc/passwd"\n'
    )
    config = load_config(workspace)
    assert (config.ui.theme, config.evaluation.cpu_threads) == ("theirs", 6)
    assert config.ui.keys == {}
    assert config.evaluation.compiler == ""
    assert config.attention.command == ()
    assert config.agent.default == "tuner"
    named = " ".join(config.problems)
    for line, key in ((3, "ui.keys"), (7, "evaluation.compiler"), (8, "attention"), (10, "agent")):
        assert f"line {line}: {key}: not taken" in named


def test_your_own_file_wins_over_the_workspace(home: Path, workspace: Path) -> None:
    own(home, '[ui]\ntheme = "mine"\n')
    (workspace / "kda.toml").write_text('[ui]\ntheme = "theirs"\nascii = true\n')
    config = load_config(workspace / "runs")
    assert (config.ui.theme, config.ui.ascii) == ("mine", True)


def test_a_broken_file_of_a_workspace_is_a_problem_and_no_error(workspace: Path) -> None:
    (workspace / "kda.toml").write_text("[ui]\ntheme = 3\n")
    config = load_config(workspace)
    assert config.ui.theme == "kda-dark"
    assert len(config.problems) == 1
    assert "line 2: ui.theme" in config.problems[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[ui]\nthem = 1\n", "line 2: ui.them: unknown key; did you mean theme?"),
        ("[uii]\n", "line 1: uii: unknown key; did you mean ui?"),
        ("files = []\n", "line 1: files: unknown key"),
        ("[ui]\nmouse = 1\n", "line 2: ui.mouse: must be true or false, it is 1"),
        ('[worker]\nrestarts = "3"\n', "line 2: worker.restarts: must be a whole number, it is '3'"),
        ("[ui]\nupdates_per_second = nan\n", "line 2: ui.updates_per_second"),
        ("\n\n[ui\n", "line 3: not TOML"),
        (
            '[resume]\nambiguous = "never"\n',
            "line 2: resume.ambiguous: 'never' is not one of ask, retry-once",
        ),
        ('"\\u001b[2J" = 1\n', "line 1: \u241b[2J: unknown key"),
        (
            "[agent.prices]\nx = {input = 1, cost = 2}\n",
            "agent.prices.x.cost: unknown key; known here are cache_read",
        ),
        ('[skills]\npins = [\n  {name = "a", sha256 = "0"},\n]\n', "line 3: skills.pins[1].sha256"),
    ],
)
def test_a_mistake_is_named_with_file_line_and_key(home: Path, workspace: Path, text: str, said: str) -> None:
    own(home, text)
    with pytest.raises(ConfigError) as caught:
        load_config(workspace)
    assert said in str(caught.value)
    assert "kda.toml" in str(caught.value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(data=st.binary(max_size=200) | st.text(alphabet="[]={}\".\n'#aui ,1", max_size=80).map(str.encode))
def test_rubbish_is_an_error_and_never_a_traceback(home: Path, workspace: Path, data: bytes) -> None:
    (home / "kda" / "kda.toml").write_bytes(data)
    try:
        load_config(workspace)
    except UserError as error:
        assert "kda.toml" in str(error)


@pytest.mark.parametrize("kind", ["themes", "skills", "workspaces"])
def test_what_comes_with_the_program_is_found(kind: str) -> None:
    assert any(share_path(kind).iterdir())  # type: ignore[arg-type]
