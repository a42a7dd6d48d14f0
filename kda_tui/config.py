"""Settings: kda.toml, merged from the packaged defaults, the user's own files and the workspace's."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kda_tui.problems import FormatError, Problem, near, shown, translate, tupled
from kda_tui.text import UserError
from kda_tui.toml_lines import MAX_BYTES, Lines, TomlError, parse_toml

FILE = "kda.toml"

# What a kda.toml that came with a workspace may say: how things look and how large they are. It may
# name no program, no key file, no agent and no place to write to, and it may not move keys: a stranger's
# file could put "promote" where "veto" is.
WORKSPACE_MAY = {
    "ui": frozenset({"theme", "columns", "mouse", "ascii", "updates_per_second"}),
    "evaluation": frozenset({"cpu_threads"}),
}
_FILLED = frozenset({"files", "problems"})  # fields of Config that no file gives

Count = Annotated[int, Field(ge=0, le=1_000_000)]
Amount = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


class ConfigError(FormatError):
    """kda.toml cannot be used."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class WorkspacesConfig(_Model):
    folders: tuple[str, ...] = ()


class UiConfig(_Model):
    theme: str = "kda-dark"
    columns: tuple[str, ...] = ()
    mouse: bool = True
    ascii: bool = False
    updates_per_second: Annotated[float, Field(ge=0.5, le=10, allow_inf_nan=False)] = 4.0
    keys: dict[str, str | tuple[str, ...]] = Field(default_factory=dict)


class Price(_Model):
    """US dollars per million tokens."""

    input: Amount
    output: Amount
    cache_write: Amount
    cache_read: Amount


class AgentConfig(_Model):
    default: Annotated[str, Field(min_length=1)] = "tuner"
    model: str = ""
    api_key_file: str = ""
    base_url: str = ""
    reviewer: Annotated[str, Field(min_length=1)] = "same"
    max_tokens: Annotated[int, Field(ge=1024, le=1_000_000)] = 32000
    effort: Literal["low", "medium", "high", "xhigh", "max"] = "high"
    prices: dict[str, Price] = Field(default_factory=dict)


class EvaluationConfig(_Model):
    """How this machine evaluates; what decides a verdict stands in the contract alone."""

    cpu_threads: Annotated[int, Field(ge=0, le=1024)] = 0
    compiler: str = ""
    cache: str = ""
    sanitizer: Literal["never", "confirm", "always"] = "confirm"


class WorkerConfig(_Model):
    restarts: Annotated[int, Field(ge=0, le=100)] = 3
    inbox_interval_s: Annotated[float, Field(ge=0.05, le=60, allow_inf_nan=False)] = 0.5


class ResumeConfig(_Model):
    ambiguous: Literal["ask", "retry-once"] = "ask"


class AttentionConfig(_Model):
    bell: bool = True
    osc: bool = True
    command: tuple[str, ...] = ()


class ProfileConfig(_Model):
    ncu: str = ""
    timeout_s: Annotated[float, Field(gt=0, le=86400, allow_inf_nan=False)] = 300.0


class SkillPin(_Model):
    name: str
    source: str = ""
    commit: str = ""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class SkillsConfig(_Model):
    pins: tuple[SkillPin, ...] = ()


class BudgetConfig(_Model):
    """Of a run whose contract names no limit; 0 = no limit."""

    candidates: Count = 0
    hours: Amount = 0.0
    usd: Amount = 0.0


class DemoConfig(_Model):
    folder: str = ""


class Config(_Model):
    """Every setting; ``files`` are those it was merged from, weakest first."""

    workspaces: WorkspacesConfig = WorkspacesConfig()
    ui: UiConfig = UiConfig()
    agent: AgentConfig = AgentConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    worker: WorkerConfig = WorkerConfig()
    resume: ResumeConfig = ResumeConfig()
    attention: AttentionConfig = AttentionConfig()
    profile: ProfileConfig = ProfileConfig()
    skills: SkillsConfig = SkillsConfig()
    budget: BudgetConfig = BudgetConfig()
    demo: DemoConfig = DemoConfig()
    files: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()  # what a workspace's kda.toml says and may not say


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    body: dict[str, Any]
    lines: Lines


def load_config(start: Path | None = None) -> Config:
    """The settings in force: packaged defaults < kda.toml at or above ``start`` < the user's < KDA_CONFIG.

    ``start`` is a workspace (default: the current folder). Its kda.toml is somebody else's word, so only
    looks and sizes are taken from it and the rest is named in ``problems``. Raises ConfigError, with
    file, key and line, for a mistake in the user's own files.
    """
    files = [_read(packaged_file(), required=True)]
    problems: list[str] = []
    beside = workspace_file(start if start is not None else Path.cwd())
    if beside is not None:
        taken = _from_workspace(beside, problems)
        files += [taken] if taken is not None else []
    files.append(_read(user_file()))
    if named := os.environ.get("KDA_CONFIG"):
        files.append(_read(Path(named).expanduser(), required=True))
    present = [f for f in files if f is not None]
    merged: dict[str, Any] = {}
    for file in present:
        _check(file)
        merged = _merge(merged, file.body)
    return Config.model_validate(
        {**merged, "files": tuple(f.path for f in present), "problems": tuple(problems)}, strict=True
    )


def user_folder() -> Path:
    """``$XDG_CONFIG_HOME/kda``, else ``~/.config/kda``: the user's settings and themes."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".config") / "kda"


def user_file() -> Path:
    return user_folder() / FILE


def workspace_file(start: Path) -> Path | None:
    """The kda.toml at ``start`` or the nearest folder above; never the shipped one or the user's own."""
    try:
        folder = start.absolute()
        for place in (folder, *folder.parents):
            found = place / FILE
            if found.is_file():
                own = (packaged_file(), user_file())
                return None if any(o.exists() and found.samefile(o) for o in own) else found
    except OSError:
        pass
    return None


def packaged_file() -> Path:
    """The kda.toml that comes with the program."""
    return _shared(FILE)


def share_path(kind: Literal["themes", "skills", "workspaces"]) -> Path:
    """A folder that comes with the program, in an installed wheel as well as in a source checkout."""
    return _shared(kind)


def _shared(name: str) -> Path:
    package = Path(__file__).resolve().parent
    installed = package / "_share" / name
    return installed if installed.exists() else package.parent / name


def _read(path: Path, required: bool = False) -> _File | None:
    try:
        data = _bytes_of(path)
    except FileNotFoundError as error:
        if required:
            raise UserError(f"{path}: there is no such file; settings are read from it") from error
        return None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from error
    try:
        body, lines = parse_toml(data, str(path))
    except TomlError as error:
        raise ConfigError(str(path), [Problem("", error.line, error.what)]) from error
    return _File(path, tupled(body), lines)


def _bytes_of(path: Path) -> bytes:
    """A plain file, or a link to one; never waits for a FIFO."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("not a plain file")
        return file.read(MAX_BYTES + 1)


def _check(file: _File) -> None:
    """Raise ConfigError for unknown keys and wrong values, all of them."""
    settings = {key: value for key, value in file.body.items() if key not in _FILLED}
    known = Config.model_fields.keys() - _FILLED
    problems = [
        Problem(key, file.lines.of((key,)), f"unknown key; {near(key, known)}")
        for key in file.body.keys() & _FILLED
    ]
    try:
        Config.model_validate(settings, strict=True)
    except ValidationError as error:
        problems += translate(error, Config, file.lines, {})
    if problems:
        raise ConfigError(str(file.path), problems)


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Tables key by key; anything else is replaced as a whole."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _from_workspace(path: Path, problems: list[str]) -> _File | None:
    """What a workspace's file may say. Everything else, and every mistake in it, is a problem, no error."""
    try:
        file = _read(path)
        if file is None:
            return None
        kept: dict[str, Any] = {}
        for table, value in file.body.items():
            may = WORKSPACE_MAY.get(table)
            if may is None or not isinstance(value, dict):
                problems.append(_not_taken(file, (table,)))
                continue
            kept[table] = {key: setting for key, setting in value.items() if key in may}
            problems += [_not_taken(file, (table, key)) for key in value if key not in may]
        taken = _File(path, kept, file.lines)
        _check(taken)
    except UserError as error:
        problems += str(error).splitlines()
        return None
    return taken


def _not_taken(file: _File, key: tuple[str, ...]) -> str:
    return (
        f"{file.path}, line {file.lines.of(key)}: {shown(key, {})}: not taken from a workspace; "
        f"set it in {user_file()}"
    )
