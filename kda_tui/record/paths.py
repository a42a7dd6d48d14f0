"""Where everything in a workspace lives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kda_tui.text import UserError


def check_folder(path: Path) -> None:
    """Nothing if ``path`` is a folder; else :class:`UserError` says what it is instead."""
    if not path.is_dir():
        raise UserError(
            f"{path}: a file, not a folder" if path.exists() else f"{path}: there is no such folder"
        )


@dataclass(frozen=True, slots=True)
class RunPaths:
    """The files of one run, ``runs/<run>/``."""

    root: Path

    @property
    def name(self) -> str:
        return self.root.name

    @property
    def events(self) -> Path:
        return self.root / "events.jsonl"

    @property
    def transcript(self) -> Path:
        return self.root / "transcript.jsonl"

    @property
    def samples(self) -> Path:
        return self.root / "samples"

    @property
    def blobs(self) -> Path:
        return self.root / "blobs"

    @property
    def live(self) -> Path:
        return self.root / "live.json"

    @property
    def log(self) -> Path:
        return self.root / "worker.log"


@dataclass(frozen=True, slots=True)
class Workspace:
    """A workspace folder; knows the names in it and touches none of them."""

    root: Path

    @property
    def name(self) -> str:
        return self.root.name

    @property
    def contract(self) -> Path:
        return self.root / "contract.toml"

    @property
    def reference(self) -> Path:
        return self.root / "reference.py"

    @property
    def lock(self) -> Path:
        return self.root / "workspace.lock"

    @property
    def draft(self) -> Path:
        return self.root / "docs" / "draft.md"

    @property
    def plan(self) -> Path:
        return self.root / "docs" / "plan.md"

    @property
    def plans(self) -> Path:
        return self.root / "docs" / "plans"

    @property
    def reviews(self) -> Path:
        return self.root / "docs" / "reviews"

    @property
    def seeds(self) -> Path:
        """Candidate folders that a tuner or a person starts from; not yet submitted."""
        return self.root / "seeds"

    @property
    def candidates(self) -> Path:
        return self.root / "candidates"

    def candidate(self, cand: str) -> Path:
        return self.candidates / cand

    @property
    def candidates_ledger(self) -> Path:
        return self.root / "candidates.jsonl"

    @property
    def benchmark(self) -> Path:
        return self.root / "benchmark.csv"

    @property
    def decisions(self) -> Path:
        return self.root / "decisions.jsonl"

    @property
    def inbox(self) -> Path:
        return self.root / "inbox"

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    def run(self, run: str) -> RunPaths:
        return RunPaths(self.runs / run)

    def run_names(self) -> list[str]:
        """Names of the runs on disk, oldest first (``r001``, ``r002``, ...)."""
        try:
            return sorted(p.name for p in self.runs.iterdir() if p.is_dir())
        except OSError:
            return []

    @property
    def profile(self) -> Path:
        return self.root / "profile"

    @property
    def outputs(self) -> Path:
        return self.root / "outputs"
