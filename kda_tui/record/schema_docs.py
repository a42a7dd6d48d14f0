"""docs/records.md, rendered from the schemas: ``python -m kda_tui.record.schema_docs > docs/records.md``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from kda_tui.record.schema import CANDIDATE, COLUMNS, DECISION, INBOX, LIVE, TRANSCRIPT, schemas
from kda_tui.record.schema_events import EVENTS
from kda_tui.record.schema_fields import EVENT_ENVELOPE, STAMP, Field, Kind

_HEAD = """# Records

<!-- Rendered from kda_tui/record/schema*.py by `python -m kda_tui.record.schema_docs`. Edit there. -->

A workspace is plain files. This page says what is in them, and what a program may rely on that reads or writes them.

## Ledgers

| file | one line for |
| --- | --- |
| `runs/<run>/events.jsonl` | every event: the **journal** |
| `runs/<run>/transcript.jsonl` | every finished block of what the agent or a person said or did |
| `candidates.jsonl` | every change of a candidate |
| `decisions.jsonl` | what became of every decision |
| `benchmark.csv` | every candidate, workload and arm that was measured |

Ledgers are append-only, UTF-8, at most 64 KB a line. Times are UTC with `Z`; `_s` is seconds, `_us` microseconds.
Only the holder of `workspace.lock` (flock, for life) writes them. Everybody else puts one file into `inbox/`.

**Commit.** A line of the journal, whole and on disk (fsync), is the commit. What the line names by a hash (sources, samples,
blobs, plans) was put in place before. `candidates.jsonl`, `decisions.jsonl` and `benchmark.csv` are projections of the journal,
written after it under the same `run` and `seq`; they can be rebuilt from it at any time.

**`seq`** is one counter per run over journal and transcript, without gaps. **`link`** is the beginning of the SHA-256 of the line
before it in the same file, torn lines not counted: an edited line is found at the line after it.

**Long lines.** Rows that do not fit go into a blob (`rows_blob`). A text that does not fit keeps its first 400 characters and a mark
`[N bytes, blob SHA]`; `blobs` lists what the line brought. Numbers that are not finite are `null`.

**Torn tails.** A crash can leave a line without its newline. It was never committed. It is not truncated and not completed, because a live reader
would join two halves into a line that nobody wrote: the next start closes it with `#torn` and records a `recovered` event that names
file, offset and length. Readers drop a tail without newline, lines that end in `#torn`, and rows of `benchmark.csv` whose last cell is not `.`.

**Recovery.** When a run is opened: torn tails are closed, projections that the journal has and that are missing are appended (key: run and seq;
in `benchmark.csv` also workload and arm), and each torn line is recorded. A crash in the middle of that is mended in the same way. A crash at any byte loses no committed line and
doubles none.

**A full disk** commits nothing by half: the call fails before its journal line is whole, and may be made again when there is room.

**Checkpoints** hash the ledgers up to this moment and chain to each other over all runs. `kda verify` checks links, checkpoints, projections and every
file that a line brought, and names the file and line that was edited. `kda verify --against HEAD` also finds a record that was rewritten as a whole:
note the head that a report prints.

**Secrets.** Values of environment variables whose name has KEY, TOKEN, SECRET, PASSWORD or CREDENTIAL, of at least 16 characters and neither word nor number,
are replaced in every text by `[redacted NAME]`. A source that holds one is refused.

## Reading with jq and awk

```sh
# what happened, in order
jq -Rr 'fromjson? | [.t, .kind, (.why // .cand // .claim // "")] | @tsv' runs/r001/events.jsonl
# the newest state of every candidate, fastest first
jq -Rn '[inputs | fromjson?] | group_by(.id) | map(last) | map(select(.ratio)) | sort_by(-.ratio)[] | {id, validity, speed, ratio}' candidates.jsonl
# who decided what
jq -Rr 'fromjson? | [.t, .who, .kind, .outcome, .why] | @tsv' decisions.jsonl
# medians of one candidate; no cell has a comma, a quote or a newline
awk -F, '$NF == "." && $6 == "c0001" { print $7, $8, $15 }' benchmark.csv
# the bytes that a checkpoint covered
head -c BYTES candidates.jsonl | sha256sum
```

`-R` with `fromjson?` skips torn lines.
"""


def render() -> str:
    """The whole page."""
    parts = [_HEAD]
    parts += [
        "## candidates.jsonl\n",
        _section(CANDIDATE, STAMP),
        "## decisions.jsonl\n",
        _section(DECISION, STAMP),
        "## inbox/\n",
        INBOX.says
        + " Order of taking: time of writing, then name. The file goes after its line is in decisions.jsonl.\n",
        _table(INBOX.fields),
        "## transcript.jsonl\n",
        _section(TRANSCRIPT, STAMP),
        "## benchmark.csv\n",
        "Every row stands for itself: commas in a cell are written `;`, double quotes `'`. Absent is empty.\n",
        _columns(COLUMNS),
        "## live.json\n",
        _section(LIVE, ()),
        "## events.jsonl\n",
        "Every line has:\n",
        _table(EVENT_ENVELOPE),
        "Any line may carry `candidate` and `decision` (objects: their lines), and `rows`. As a text, `decision` is the id of the "
        "decision that the event follows from; `effect` is then its place in that decision's `todo`.\n",
    ]
    for kind in EVENTS:
        parts += [f"### {kind.name}\n", kind.says + "\n"]
        if kind.fields:
            parts.append(_table(kind.fields))
    parts += [
        "## JSON Schema\n",
        "`*` in the tables above is `required` here. More keys are allowed everywhere: readers keep what they do not know.\n",
        "```json\n" + _compact(schemas()) + "\n```\n",
    ]
    return "\n".join(parts)


def _section(kind: Kind, envelope: tuple[Field, ...]) -> str:
    return f"{kind.says}\n\n{_table((*envelope, *kind.fields))}"


def _table(fields: Iterable[Field]) -> str:
    rows = [f"| `{f.name}`{'*' if f.needed else ''} | {_type(f.schema)} | {f.says} |" for f in fields]
    return "\n".join(["| key | type | meaning |", "| --- | --- | --- |", *rows]) + "\n"


def _columns(columns: Mapping[str, str]) -> str:
    rows = [f"| `{name}` | {says} |" for name, says in columns.items()]
    return "\n".join(["| column | meaning |", "| --- | --- |", *rows]) + "\n"


def _type(schema: Mapping[str, Any]) -> str:
    """A schema in few words."""
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"] if word)
    if "const" in schema:
        return f"`{schema['const']}`"
    if "items" in schema:
        return f"list of {_type(schema['items'])}"
    kind = schema.get("type", "any")
    words = [kind] if isinstance(kind, str) else kind
    return " or ".join({"string": "text"}.get(word, word) for word in words)


def _compact(document: Mapping[str, Any]) -> str:
    """The schema document, one key of a record a line."""
    lines = ["{", f' "$schema": {json.dumps(document["$schema"])},', ' "$defs": {']
    definitions = list(document["$defs"].items())
    for name, schema in definitions:
        lines.append(f"  {json.dumps(name)}: {{")
        lines.append(f'   "type": "object", "required": {json.dumps(schema["required"])},')
        lines.append('   "properties": {')
        keys = [f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in schema["properties"].items()]
        lines.append(",\n".join(keys))
        lines.append("   }")
        lines.append("  }" + ("," if name != definitions[-1][0] else ""))
    return "\n".join([*lines, " }", "}"])


if __name__ == "__main__":
    print(render(), end="")
