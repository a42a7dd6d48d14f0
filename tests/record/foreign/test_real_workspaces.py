"""Workspaces that people really keep. Not part of the project: KDA_TEST_DATA names the folder, else these are skipped."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from kda_tui.record.foreign.found import find_workspaces
from kda_tui.record.foreign.reader import ForeignReader
from kda_tui.record.open import is_own, open_reader
from kda_tui.record.records import TranscriptBlock
from kda_tui.record.transcript import TranscriptFile

DATA = Path(os.environ.get("KDA_TEST_DATA") or Path(__file__).parents[4] / "shared" / "data")

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"{DATA} is not here; KDA_TEST_DATA may name it")


@pytest.fixture(scope="module")
def roots() -> dict[str, Path]:
    return {root.relative_to(DATA).as_posix(): root for root in find_workspaces(DATA / "workspaces")}


def test_every_workspace_opens_with_every_row(roots: dict[str, Path]) -> None:
    assert len(roots) >= 30
    for name, root in roots.items():
        assert not is_own(root), name
        snapshot = open_reader(root).settle()
        lines = sum(
            len([x for x in (root / f).read_bytes().split(b"\n") if x.strip()])
            for f in ForeignReader(root)._layout.ledgers
        )
        assert snapshot.extra["rows"]["ledger"] >= lines, name
        shown = sum(
            len(c.extra.get("observations", (1,))) for c in snapshot.candidates.values() if "raw" in c.extra
        )
        shown += sum(len(e.extra.get("observations", (1,))) for e in snapshot.extra["events"])
        assert shown == snapshot.extra["rows"]["ledger"], name
        assert all(f.severity != "error" for f in snapshot.findings), name


@pytest.mark.parametrize(
    ("name", "rows", "table", "best"),
    [
        ("workspaces/vector_add", 73, 73, "float4"),
        ("workspaces/kda_pilot/h200_diffusion_norm_infer", 26, 115, "tilev1"),
        ("workspaces/trainium/bmm", 14, 20, "bmm_v2"),
        ("workspaces/trainium/adamw", 15, 16, "adamw_v2_ch1824"),
        ("workspaces/vliw_takehome", 7, 7, "wavefront_offset_madd_alu_hash"),
        ("workspaces/rowwise_softmax", 2, 8, "c001_warp_shuffle"),
        ("workspaces/kda_pilot/h200_diffusion_cutedsl_norm_tanh_mul_add", 19, 142, "candidate-v1-cuda-port"),
        ("workspaces/kda_pilot/h200_diffusion_qknorm_rope", 10, 92, "cossin-vec"),
        ("workspaces/empty_scaffold", 0, 0, None),
    ],
)
def test_rows_and_the_result(
    roots: dict[str, Path], name: str, rows: int, table: int, best: str | None
) -> None:
    snapshot = open_reader(roots[name]).settle()
    assert snapshot.extra["rows"] == {"ledger": rows, "table": table}
    found = snapshot.extra["best"]
    assert (found.cand if found else None) == best


def test_the_largest_number_is_not_the_result(roots: dict[str, Path]) -> None:
    snapshot = open_reader(roots["workspaces/kda_pilot/h200_diffusion_norm_infer"]).settle()
    assert snapshot.candidates["normv5"].decision == "superseded"
    assert (snapshot.candidates["normv5"].ratio or 0) > snapshot.extra["best"].ratio


def test_results_are_those_that_people_state(roots: dict[str, Path]) -> None:
    """The headline of docs/results.md of each, found again in rows."""
    for name, ratio in (
        ("kda_pilot/b200_diffusion_cutedsl_norm_scale_shift", 1.3022),
        ("kda_pilot/b200_diffusion_norm_infer", 1.3722),
        ("kda_pilot/h200_diffusion_fuse_scale_shift", 1.2874),
    ):
        best = open_reader(roots[f"workspaces/{name}"]).settle().extra["best"]
        assert abs(best.ratio - ratio) < 5e-4, (name, best)
        assert best.stated


def test_rows_that_were_disturbed_do_not_count(roots: dict[str, Path]) -> None:
    snapshot = open_reader(roots["workspaces/kda_pilot/b200_diffusion_cutedsl_norm_scale_shift"]).settle()
    assert sum("may not count" in f.seen for f in snapshot.findings) == 3
    assert snapshot.bench is not None
    assert list(snapshot.bench.admissible).count(0) > 0


@pytest.mark.parametrize(
    "name", ["h200_norm_infer", "b200_ltx2_qknorm_split_rope", "b200_causal_conv3d_cat_pad"]
)
def test_a_workspace_played_step_by_step_over_one_folder(name: str, tmp_path: Path) -> None:
    series = sorted((DATA / "workspaces" / "kda_pilot_series" / name).iterdir())
    assert len(series) > 1
    live = tmp_path / "live"
    shutil.copytree(series[0], live)
    reader = ForeignReader(live)
    reader.settle()
    for step in series[1:]:
        for path in live.rglob("*"):
            if path.is_file():
                path.unlink()
        shutil.copytree(step, live, dirs_exist_ok=True)
        followed, fresh = reader.settle(), ForeignReader(live).settle()
        assert (followed.candidates, followed.findings, followed.counts) == (
            fresh.candidates,
            fresh.findings,
            fresh.counts,
        )


def test_review_loops_are_shown() -> None:
    snapshot = open_reader(DATA / "rlcr" / "eleven_rounds").settle()
    assert len(snapshot.extra["rounds"]) == 11
    assert any("says round 0" in f.seen for f in snapshot.findings)


def test_recorded_transcripts_have_blocks() -> None:
    files = sorted((DATA / "transcripts").rglob("*.jsonl"))
    assert files
    for path in files:
        file = TranscriptFile(path)
        file.refresh()
        blocks = [file.block(i) for i in range(len(file))]
        assert (
            sum(isinstance(b, TranscriptBlock) and b.kind != "notice" for b in blocks) >= len(blocks) // 2
        ), path.name
