"""Skills are read as they are, pinned by content, and searched; a malformed one is one clear line."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kda_tui.skills.pins import Pin, add, check, differences, file_hashes, tree_sha256, usable
from kda_tui.skills.search import SkillIndex
from kda_tui.skills.skill import find_skills, read_skill
from kda_tui.text import UserError

FRONT = "---\nname: {name}\ndescription: Use it --- when testing\nlicense: CC-BY-4.0\n---\n"


def make(folder: Path, name: str = "tiles", body: str = "# Tiles\n\nRegister tiles.\n") -> Path:
    path = folder / name
    (path / "references").mkdir(parents=True)
    (path / "SKILL.md").write_text(FRONT.format(name=name) + body)
    (path / "references" / "swizzle.md").write_text(
        "# Shared memory swizzles\ntags: bank conflicts, ldmatrix\n\n## When\nConflicts in a column read.\n"
        "```\n# not a heading\n```\n"
    )
    return path


def test_a_description_may_hold_three_dashes(tmp_path: Path) -> None:
    skill = read_skill(make(tmp_path))
    assert skill.description == "Use it --- when testing"
    assert skill.problems == ()
    assert [p.name for p in skill.pages()] == ["SKILL.md", "swizzle.md"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("no front matter", "line 1"),
        ("---\nname: a\n", "not closed"),
        ("---\nname: a\ndescription: Use when: now\n---\n", "line 3"),
        ("---\n- a\n---\n", "mapping"),
        ("---\n" + "a: " + "[" * 3000 + "\n---\n", "front matter"),
    ],
)
def test_malformed_front_matter_names_its_line(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "SKILL.md").write_text(text)
    with pytest.raises(UserError) as error:
        read_skill(tmp_path / "a")
    assert "SKILL.md" in str(error.value)
    assert "\n" not in str(error.value)
    assert says in str(error.value) or "line" in str(error.value)


def test_wrong_names_and_unknown_fields_are_reported_not_fatal(tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.mkdir()
    (path / "SKILL.md").write_text(
        "---\nname: Tiles_X\ndescription: d\nhooks: {}\nallowed-tools: Bash Read\n---\nx\n"
    )
    skill = read_skill(path)
    assert any("lower-case" in problem for problem in skill.problems)
    assert skill.unknown == ("hooks",)
    assert skill.allowed_tools == ("Bash", "Read")


def test_a_changed_byte_or_mode_breaks_the_pin(tmp_path: Path) -> None:
    path = make(tmp_path)
    pins = {"tiles": Pin("tiles", tree_sha256(path))}
    before = file_hashes(path)
    assert usable(read_skill(path), pins).name == "tiles"
    page = path / "references" / "swizzle.md"
    page.chmod(0o755)
    assert check(read_skill(path), pins).state == "differs"
    page.chmod(0o644)
    page.write_text("# Evil\n")
    with pytest.raises(UserError, match="kda skills diff tiles"):
        usable(read_skill(path), pins)
    assert differences(before, file_hashes(path)) == ["~ references/swizzle.md"]


def test_links_out_of_a_skill_are_refused(tmp_path: Path) -> None:
    path = make(tmp_path)
    (path / "references" / "passwd.md").symlink_to("/etc/passwd")
    with pytest.raises(UserError, match="plain files"):
        tree_sha256(path)
    assert all(p.name != "passwd.md" for p in read_skill(path).pages())


def test_add_copies_one_commit_read_only(tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    make(origin)
    git = ["git", "-C", str(origin), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run([*git[:3], "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "one"], check=True)
    commit = subprocess.run(
        [*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    skill, pin = add(f"{origin}#tiles", commit, tmp_path / "skills")
    assert pin.sha256 == tree_sha256(skill.path)
    assert not (skill.path / "SKILL.md").stat().st_mode & 0o222
    with pytest.raises(UserError, match="40-digit"):
        add(str(origin), "main", tmp_path / "skills")
    with pytest.raises(UserError, match="already there"):
        add(f"{origin}#tiles", commit, tmp_path / "skills")
    with pytest.raises(UserError, match="inside the repository"):
        add(f"{origin}#../x", commit, tmp_path / "skills")


def test_search_ranks_titles_and_tags_above_text(tmp_path: Path) -> None:
    make(tmp_path)
    make(tmp_path, "plain", "# Notes\n\nA word on bank conflicts in passing.\n")
    index = SkillIndex(find_skills([tmp_path]))
    hits = index.search("bank conflict")
    assert hits[0].section.page == "Shared memory swizzles"
    assert {h.section.skill for h in hits} == {"tiles", "plain"}
    assert all(h.section.heading != "not a heading" for h in index.search("heading"))


@given(st.text(max_size=60))
def test_any_query_is_a_query(query: str) -> None:
    SkillIndex([]).search(query)
