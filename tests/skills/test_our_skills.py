"""The skills that we ship: well-formed, complete, and every sketch compiles where NVRTC is installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kda_tui.profiling.metrics import METRICS
from kda_tui.skills.search import SkillIndex
from kda_tui.skills.skill import find_skills, read_skill

SKILLS = Path(__file__).parents[2] / "skills"
PAGES = sorted((SKILLS / "kernel-wiki" / "references").glob("*.md"))
HEADINGS = ("When it applies", "Expected gain", "How to see it in a profile", "Pitfalls", "Sketch", "Sources")


def test_every_skill_is_well_formed() -> None:
    found = find_skills([SKILLS])
    assert {"kernel-wiki", "ncu-report"} <= {s.name for s in found}
    for skill in found:
        assert skill.problems == (), skill.name
        assert skill.unknown == (), skill.name


def test_the_wiki_is_whole_and_its_table_leads_to_every_page() -> None:
    assert len(PAGES) >= 24
    index = (SKILLS / "kernel-wiki" / "SKILL.md").read_text()
    for page in PAGES:
        text = page.read_text()
        assert [h for h in HEADINGS if f"## {h}\n" not in text] == [], page.name
        assert f"references/{page.name}" in index, page.name
    for named in re.findall(r"references/([\w-]+\.md)", index):
        assert (SKILLS / "kernel-wiki" / "references" / named).is_file(), named


def test_the_metrics_page_lists_every_metric() -> None:
    text = (SKILLS / "ncu-report" / "references" / "metrics.md").read_text()
    assert [m.key for m in METRICS if f"| {m.key} |" not in text] == []


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("uncoalesced stores", "coalescing"),
        ("bank conflicts", "swizzle"),
        ("ERR_NVGPUCTRPERM", "states"),
        ("softmax running maximum", "online-softmax"),
        ("TMA descriptor", "tma"),
    ],
)
def test_words_of_a_diagnosis_find_their_page(words: str, page: str) -> None:
    index = SkillIndex([read_skill(SKILLS / name) for name in ("kernel-wiki", "ncu-report")])
    assert page in [hit.section.path.stem for hit in index.search(words)[:4]]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_sketches_compile(page: Path, tmp_path: Path) -> None:
    pytest.importorskip("cuda.bindings", reason="needs kda-tui[cuda]")
    from kda_tui.evaluation.devices.cuda import compilers

    if not compilers.nvrtc_version():
        pytest.skip("NVRTC is not installed")
    (sketch,) = re.findall(r"```cuda\n(.*?)```", page.read_text(), re.DOTALL)
    source = tmp_path / f"{page.stem}.cu"
    source.write_text(sketch)
    arch = "sm_100a" if page.stem == "tcgen05" else "sm_90a"
    built = compilers.compile_nvrtc(source, arch, [], [])
    assert built.cubin, built.log
