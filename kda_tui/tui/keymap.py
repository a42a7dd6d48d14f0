"""Which key does what: the registry with a person's remaps, and the clashes between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kda_tui.tui.actions import ACTIONS, BY_ID, FORBIDDEN_ALONE, PARENTS, SCOPES, Action, key_name

SPELLINGS: Mapping[str, str] = {
    "/": "slash", ":": "colon", ",": "comma", "?": "question_mark", "esc": "escape", "return": "enter",
    ".": "full_stop", ";": "semicolon", "=": "equals_sign", "+": "plus", "-": "minus", "_": "underscore",
    "<": "less_than_sign", ">": "greater_than_sign", "pgup": "pageup", "pgdn": "pagedown", " ": "space",
}  # fmt: skip


@dataclass(frozen=True)
class Keymap:
    """Actions with their keys in force, and what was wrong with the remaps."""

    actions: Mapping[str, Action]
    table: Mapping[tuple[str, str], str]  # (scope, key) -> action id
    problems: tuple[str, ...] = ()

    def action(self, scope: str, key: str) -> Action | None:
        """What a key does in a scope: the scope's own action first, then those around it."""
        for where in (scope, *PARENTS.get(scope, ("everywhere",))):
            found = self.table.get((where, key))
            if found is not None:
                return self.actions[found]
        return None

    def keys(self, action: str) -> str:
        """The keys of an action as a person writes them, first one first."""
        return " ".join(key_name(key) for key in self.actions[action].keys)

    def key(self, action: str) -> str:
        """The first key of an action, or "" when it has none."""
        keys = self.actions[action].keys
        return key_name(keys[0]) if keys else ""

    def in_scope(self, scope: str) -> list[Action]:
        """Every action that works in a scope, its own first."""
        around = (scope, *PARENTS.get(scope, ("everywhere",)))
        return [action for where in around for action in self.actions.values() if action.scope == where]


def build_keymap(remaps: Mapping[str, str | Sequence[str]] | None = None) -> Keymap:
    """The keymap with remaps by action id; an unusable remap is reported and left out."""
    problems: list[str] = []
    actions = dict(BY_ID)
    for name, wanted in (remaps or {}).items():
        if name not in actions:
            problems.append(f"keys.{name}: no such action; docs/keymap.md lists them")
            continue
        keys = tuple(SPELLINGS.get(k, k) for k in (wanted.split() if isinstance(wanted, str) else wanted))
        fault = _fault(actions[name], keys)
        if fault:
            problems.append(f"keys.{name}: {fault}; its keys stay {_names(actions[name].keys)}")
            continue
        actions[name] = replace(actions[name], keys=keys)
    table, clashes = _table(actions)
    return Keymap(actions, table, (*problems, *clashes))


def _fault(action: Action, keys: tuple[str, ...]) -> str:
    """Why these keys cannot be the keys of an action, or ""."""
    if keys and all(key in FORBIDDEN_ALONE for key in keys):
        return f"{_names(keys)} may be taken by a terminal or multiplexer and cannot be the only key"
    if action.changes and any(not (len(key) == 1 and key.isupper()) for key in keys):
        return "an action that changes something needs a capital letter"
    if not action.changes and any(len(key) == 1 and key.isupper() and key not in "GN" for key in keys):
        return "capital letters are for actions that change something (G and N excepted)"
    return ""


def _table(actions: Mapping[str, Action]) -> tuple[dict[tuple[str, str], str], list[str]]:
    table: dict[tuple[str, str], str] = {}
    clashes: list[str] = []
    for action in actions.values():
        for key in action.keys:
            other = table.setdefault((action.scope, key), action.id)
            if other != action.id:
                clashes.append(_clash(key, actions[other], action))
    for (scope, key), name in table.items():
        for around in PARENTS[scope]:
            outer = table.get((around, key))
            if outer is not None:
                clashes.append(_clash(key, actions[name], actions[outer]))
    return table, clashes


def _clash(key: str, kept: Action, lost: Action) -> str:
    return (
        f"keys: {key_name(key)} is both '{kept.id}' and '{lost.id}'; "
        f"'{kept.id}' has it ({SCOPES[kept.scope].lower()})"
    )


def _names(keys: Iterable[str]) -> str:
    return " ".join(key_name(key) for key in keys)


def keymap_document() -> str:
    """docs/keymap.md, generated."""
    out = [
        "# Keys",
        "",
        "Generated from the registry of actions (`kda_tui/tui/actions.py`); a test compares it.",
        "",
        'Remap by id in your own kda.toml: `[ui.keys]`, then for example `zoom = "z"` or `find = ["/", "ctrl+s"]`.',
        "A capital letter changes something and asks once; Enter with a typed reason confirms, `y` never does.",
        "Keys that clash are reported when the screen opens.",
    ]
    keymap = build_keymap()
    for scope, title in SCOPES.items():
        out += ["", f"## {title}", "", "| keys | id | what it does |", "| --- | --- | --- |"]
        for action in ACTIONS:
            if action.scope == scope:
                mark = " Asks first." if action.changes else ""
                out.append(f"| {keymap.keys(action.id)} | `{action.id}` | {action.help}{mark} |")
    return "\n".join(out) + "\n"
