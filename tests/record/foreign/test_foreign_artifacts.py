"""Files that a row names: what is known of each, and that none outside is ever opened."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kda_tui.record.foreign.artifacts import Artifact, artifacts_of


def test_there_missing_remote_and_outside(tmp_path: Path) -> None:
    root = tmp_path / "w"
    (root / "src").mkdir(parents=True)
    (root / "src" / "k.cu").write_text("x")
    (tmp_path / "secret.txt").write_text("x")
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    body = {
        "source_files": ["src/k.cu", "src/gone.cu"],
        "evidence": {"log": "see /home/u/run/log.txt, REMOTE_KDA_DIR/logs/a.log", "up": "../secret.txt"},
        "report": "link.txt",
        "notes": "not/a/place/that/is/looked/at.md",
    }
    assert artifacts_of(root, body) == (
        Artifact("src/k.cu", "there"),
        Artifact("src/gone.cu", "missing"),
        Artifact("/home/u/run/log.txt", "remote"),
        Artifact("REMOTE_KDA_DIR/logs/a.log", "remote"),
        Artifact("../secret.txt", "outside"),
        Artifact("link.txt", "outside"),
    )


@given(st.text(max_size=60))
def test_any_text_is_taken(text: str) -> None:
    for artifact in artifacts_of(Path("/nowhere"), {"evidence": text}):
        assert artifact.state in ("missing", "remote", "outside")
