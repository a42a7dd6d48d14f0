"""Evaluating and debugging from the command line, and changing the contract. The record is left alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Kda = Callable[..., Any]


@pytest.fixture
def wrong(small: Path) -> Path:
    """A candidate that forgets to divide by the sum."""
    folder = small / "seeds" / "wrong"
    shutil.copytree(small / "baseline", folder)
    kernel = folder / "kernel.cu"
    text = kernel.read_text()
    assert "/ sum;" in text
    kernel.write_text(text.replace("/ sum;", ";"))
    return folder


def untouched(workspace: Path) -> bool:
    return not any(
        (workspace / name).exists() for name in ("runs", "candidates.jsonl", "inbox", "benchmark.csv")
    )


def test_a_right_candidate_passes_and_nothing_is_recorded(small: Path, kda: Kda) -> None:
    answer = kda("eval", "baseline", "-C", small, "--level", "correct", "--json")
    assert answer.code == 0, answer.err
    verdict = answer.json
    assert (verdict["validity"], verdict["stage_reached"]) == ("passed", "correct")
    assert [w["workload"] for w in verdict["workloads"]] == ["r4_c33"]
    assert untouched(small)


def test_a_wrong_candidate_is_1_and_says_where(small: Path, wrong: Path, kda: Kda) -> None:
    answer = kda("eval", "seeds/wrong", "-C", small, "--level", "correct")
    assert answer.code == 1
    assert answer.out.startswith("incorrect (reached ")
    assert "elements are wrong" in answer.out
    assert untouched(small)


def test_debug_shows_what_the_kernel_prints_and_where_it_differs(small: Path, wrong: Path, kda: Kda) -> None:
    kernel = wrong / "kernel.cu"
    kernel.write_text(kernel.read_text().replace("float sum", 'if (lane == 0) printf("here\\n"); float sum'))
    answer = kda("debug", wrong, "-C", small)
    assert answer.code == 0, answer.err
    assert "here" in answer.out
    assert "y" in answer.out
    assert "passed" not in answer.out


def test_a_kernel_that_does_not_compile(small: Path, wrong: Path, kda: Kda) -> None:
    (wrong / "kernel.cu").write_text('extern "C" __global__ void softmax_rows(int x) { y = x; }\n')
    answer = kda("eval", wrong, "-C", small)
    assert answer.code == 1
    assert "compile_error" in answer.out
    assert "kernel.cu:1" in answer.out


def test_wrong_words(small: Path, kda: Kda) -> None:
    assert "the contract has r4_c33" in kda("eval", "baseline", "-w", "r1", "-C", small).err
    assert "there is no candidate c0007" in kda("eval", "c0007", "-C", small).err


def test_code_from_elsewhere_does_not_run_untrusted(small: Path, kda: Kda) -> None:
    with (small / "reference.py").open("a") as file:
        file.write("\n# changed\n")
    for words in (("eval", "baseline", "-C", small), ("contract", "check", small)):
        answer = kda(*words)
        assert answer.code == 2
        assert "kda trust" in answer.err
    assert kda("trust", small, "--show").code == 1
    assert kda("trust", small).code == 0
    assert kda("trust", small, "--show").code == 0
    assert kda("eval", "baseline", "-C", small, "--level", "smoke").code == 0


def test_the_self_test_of_a_template(small: Path, kda: Kda) -> None:
    answer = kda("contract", "check", small, "--json")
    assert answer.code == 0, answer.err
    assert answer.json["ok"] is True
    assert {"M1", "M6", "M9", "M14"} <= {row["mutant"] for row in answer.json["rows"]}


def test_amending_a_contract(small: Path, kda: Kda, tmp_path: Path) -> None:
    text = (small / "contract.toml").read_text()
    new = tmp_path / "new.toml"
    new.write_text(text.replace('device = "cpu"', 'device = "gpu"'))
    refused = kda("contract", "amend", new, small)
    assert refused.code == 2
    assert "device" in refused.err
    assert (small / "contract.toml").read_text() == text
    new.write_text(text)
    assert "nothing was changed" in kda("contract", "amend", new, small).err
    new.write_text(text.replace("min_speedup = 1.1", "min_speedup = 1.2"))
    amended = kda("contract", "amend", new, small, "--json").json
    assert amended["old"] != amended["new"]
    assert "min_speedup = 1.2" in (small / "contract.toml").read_text()


@pytest.mark.parametrize("template", ["softmax_rows", "rms_norm_rows", "causal_conv3d_cat_pad"])
def test_templates_exist_for_both_devices(template: str, kda: Kda, tmp_path: Path) -> None:
    assert template in kda("new", "--list").out
    for device in ("cpu", "cuda"):
        root = tmp_path / device
        assert kda("new", template, root, "--device", device).code == 0
        facts = json.loads(kda("contract", "check", root, "--read-only", "--json").out)
        assert facts["workloads"]
        assert f'device = "{device}"' in (root / "contract.toml").read_text()
    again = kda("new", template, tmp_path / "cpu")
    assert again.code == 2
    assert "already there" in again.err
