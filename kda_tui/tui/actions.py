"""The one registry of actions: what can be done, with which keys, where, and whether it changes anything.

Key dispatch, the hint line, the palette, the help screen, docs/keymap.md and the read-only gate all
come from here. A handler is a method ``do_<id>`` of the pane, the screen or the app.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SCOPES: Mapping[str, str] = {
    "everywhere": "Everywhere",
    "list": "In every pane and list",
    "workspace": "Workspace screen",
    "plan": "Plan pane",
    "transcript": "Transcript pane",
    "candidates": "Candidates pane",
    "benchmarks": "Benchmarks pane",
    "detail": "Candidate detail",
    "runs": "Runs screen",
    "reading": "Help, findings, decisions, diffs, plots",
}

# A scope's actions also work in the scopes on its right.
PARENTS: Mapping[str, tuple[str, ...]] = {
    "everywhere": (),
    "list": ("everywhere",),
    "workspace": ("list", "everywhere"),
    "plan": ("workspace", "list", "everywhere"),
    "transcript": ("workspace", "list", "everywhere"),
    "candidates": ("workspace", "list", "everywhere"),
    "benchmarks": ("workspace", "list", "everywhere"),
    "detail": ("list", "everywhere"),
    "runs": ("list", "everywhere"),
    "reading": ("list", "everywhere"),
}

# What multiplexers, terminals and editors' terminals keep for themselves.
FORBIDDEN_ALONE: frozenset[str] = frozenset(
    {"ctrl+a", "ctrl+b", "ctrl+p", "ctrl+e", "ctrl+i", "ctrl+m", "ctrl+h", "ctrl+j", "ctrl+space", "ctrl+@"}
    | {"pageup", "home", "end", "pagedown"}
    | {f"f{n}" for n in range(1, 25)}
    | {f"ctrl+{arrow}" for arrow in ("left", "right", "up", "down")}
)


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a person can do."""

    id: str
    keys: tuple[str, ...]
    words: str  # two or three words for the hint line
    help: str  # one sentence
    scope: str
    changes: bool = False  # sends a decision: asks once, refused when read-only
    hint: bool = False  # shown in the hint line


def _a(
    id: str, keys: str, words: str, help: str, scope: str, changes: bool = False, hint: bool = False
) -> Action:
    return Action(id, tuple(keys.split()), words, help, scope, changes, hint)


ACTIONS: tuple[Action, ...] = (
    _a("approve", "A", "approve", "Approve the plan or the promotion that waits.", "workspace", True, True),
    _a("decline", "D", "decline", "Decline the promotion or the end that is asked for.", "workspace", True, True),
    _a("changes", "C", "changes", "Ask for changes to the plan, with comments on its lines.", "workspace", True, True),
    _a("veto", "V", "veto", "Veto the selected candidate, running, judged or promoted.", "workspace", True, True),
    _a("unveto", "W", "withdraw veto", "Withdraw the veto of the selected candidate.", "workspace", True),
    _a("promote", "P", "promote", "Promote the selected candidate; a confirmation run comes first.", "workspace", True, True),
    _a("revoke", "X", "revoke", "Take back the promotion of the incumbent.", "workspace", True),
    _a("measure", "M", "measure", "Measure the selected candidate again.", "workspace", True, True),
    _a("profile", "I", "profile", "Profile the selected candidate with Nsight Compute.", "workspace", True),
    _a("autotune", "T", "autotune", "Autotune the selected candidate.", "workspace", True),
    _a("steer", "S", "steer", "Give the agent a note; it sees it in its next turn.", "workspace", True, True),
    _a("unpin", "O", "unpin", "Unpin the oldest steering note.", "workspace", True),
    _a("reply", "R", "reply", "Answer the agent's question.", "workspace", True, True),
    _a("hold", "H", "hold", "Hold: the running work ends, nothing new starts.", "workspace", True, True),
    _a("resume", "U", "go on", "Go on after a hold.", "workspace", True, True),
    _a("end", "E", "end", "End the run after the work that is running.", "workspace", True),
    _a("end_now", "K", "end now", "End the run now: the running work is killed and has no verdict.", "workspace", True),
    _a("budget", "B", "budget", "Set a budget: candidates, hours or usd.", "workspace", True),
    _a("rerun", "L", "run again", "Run again what died without a result.", "workspace", True),
    _a("abandon", "Z", "abandon", "Abandon what died without a result.", "workspace", True),
    _a("restart", "Y", "start worker", "Start a worker on this workspace, detached.", "workspace", True),
    _a("zoom", "z", "zoom", "Let the pane fill the screen, and back.", "workspace", hint=True),
    _a("waiting", "w", "waiting", "Show the next thing that waits for you.", "workspace"),
    _a("pane_1", "1", "contract", "Go to the contract.", "workspace"),
    _a("pane_2", "2", "plan", "Go to the plan.", "workspace"),
    _a("pane_3", "3", "transcript", "Go to the transcript.", "workspace"),
    _a("pane_4", "4", "candidates", "Go to the candidates.", "workspace"),
    _a("pane_5", "5", "benchmarks", "Go to the benchmarks.", "workspace"),
    _a("pane_6", "6", "hotspots", "Go to the hotspots.", "workspace"),
    _a("next_pane", "tab right l", "next pane", "Go to the next pane.", "workspace"),
    _a("previous_pane", "shift+tab left h", "previous pane", "Go to the previous pane.", "workspace"),
    _a("find", "slash", "find", "Find a text in what is shown; in tables: filter.", "list", hint=True),
    _a("find_next", "n", "next found", "Go to the next text found.", "list"),
    _a("find_previous", "N", "previous found", "Go to the previous text found.", "list"),
    _a("wiki", "u", "look up", "Search the skills: techniques, metrics, states of the profiler.", "workspace"),
    _a("findings", "i", "findings", "What the reader could not take as it was.", "workspace"),
    _a("decisions", "a", "decisions", "Every decision: who, when, why, and what became of it.", "workspace"),
    _a("freeze", "p", "freeze", "Freeze the display; the run and the reading go on.", "workspace"),
    _a("editor", "e", "editor", "Open what the pane shows in $EDITOR.", "list"),
    _a("pager", "v", "pager", "Open what the pane shows in $PAGER.", "list"),
    _a("copy", "y", "copy", "Copy what the pane shows, as Markdown.", "list", hint=True),
    _a("export", "x", "export", "Write this screen as SVG and text into the current folder.", "list"),
    _a("runs", "r", "runs", "Go to the list of workspaces.", "workspace", hint=True),
    _a("plan_diff", "d", "diff", "Compare the plan with its last revision.", "plan", hint=True),
    _a("plan_view", "t", "plan or draft", "Show plan, draft or reviews in turn.", "plan", hint=True),
    _a("comment", "c", "comment", "Comment on the line under the cursor; C sends the comments.", "plan", hint=True),
    _a("follow", "f", "follow", "Follow the end of the transcript.", "transcript", hint=True),
    _a("fold", "t space", "fold", "Fold or unfold thinking and long results.", "transcript", hint=True),
    _a("filter", "f", "filter", "Filter: words, or for example 'faster reg<64 ratio>1.1'.", "candidates", hint=True),
    _a("order", "o", "order", "Order by the next column.", "candidates", hint=True),
    _a("tree", "t", "tree", "Show lineage as a tree.", "candidates", hint=True),
    _a("diff", "d", "diff", "Compare source with the parent, or the two marked candidates.", "candidates", hint=True),
    _a("events", "s", "events", "Show the rows between candidates, too: reviews, profiles, exports.", "candidates"),
    _a("mark", "space m", "mark", "Mark a candidate; two marks are compared.", "candidates"),
    _a("plot", "o", "plot", "Plot progress, roofline, distribution or intervals, in turn.", "benchmarks", hint=True),
    _a("next_tab", "tab right l", "next", "Next part of the candidate.", "detail", hint=True),
    _a("previous_tab", "shift+tab left h", "previous", "Previous part of the candidate.", "detail", hint=True),
    _a("detail_diff", "d", "diff", "Diff against the parent, the incumbent, the baseline in turn.", "detail", hint=True),
    _a("runs_order", "o", "order", "Order by the next column.", "runs", hint=True),
    _a("runs_restart", "U", "restart worker", "Start a worker where it is gone.", "runs", True, True),
    _a("down", "j down", "down", "One row down.", "list"),
    _a("up", "k up", "up", "One row up.", "list"),
    _a("half_down", "ctrl+d", "half a page down", "Half a page down.", "list"),
    _a("half_up", "ctrl+u", "half a page up", "Half a page up.", "list"),
    _a("page_down", "ctrl+f pagedown", "page down", "A page down.", "list"),
    _a("page_up", "b pageup", "page up", "A page up.", "list"),
    _a("first", "g home", "first", "To the first row.", "list"),
    _a("last", "G end", "last", "To the last row; the transcript follows again.", "list"),
    _a("open", "enter", "open", "Open what is selected.", "list"),
    _a("palette", "colon ctrl+k", "palette", "Find and run any action by its words.", "everywhere", hint=True),
    _a("help", "question_mark f1", "keys", "Keys of this screen.", "everywhere", hint=True),
    _a("theme", "comma", "theme", "The next theme.", "everywhere"),
    _a("redraw", "ctrl+l", "redraw", "Draw the whole screen again.", "everywhere"),
    _a("suspend", "ctrl+z", "suspend", "Go to the shell; fg comes back. The run goes on.", "everywhere"),
    _a("leave", "q", "leave", "Leave; the run goes on.", "everywhere", hint=True),
    _a("escape", "escape", "back", "Close, unzoom, or clear the filter.", "everywhere"),
)  # fmt: skip

BY_ID: Mapping[str, Action] = {action.id: action for action in ACTIONS}

KEY_NAMES: Mapping[str, str] = {
    "slash": "/",
    "colon": ":",
    "comma": ",",
    "question_mark": "?",
    "escape": "Esc",
    "enter": "Enter",
    "space": "Space",
    "tab": "Tab",
    "shift+tab": "Shift+Tab",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "left": "Left",
    "right": "Right",
    "up": "Up",
    "down": "Down",
    "home": "Home",
    "end": "End",
    "f1": "F1",
}


def key_name(key: str) -> str:
    """A key as a person writes it."""
    return KEY_NAMES.get(key, key.replace("ctrl+", "Ctrl+"))
