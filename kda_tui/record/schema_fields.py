"""What a record is made of: fields with their JSON Schema and their meaning, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": ["number", "null"]}  # null: not finite, or not known
FLAG: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
TEXTS: Schema = {"type": "array", "items": {"type": "string"}}
OBJECTS: Schema = {"type": "array", "items": {"type": "object"}}
SHA: Schema = {"type": "string", "pattern": "^([0-9a-f]{64})?$"}
TIME: Schema = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"}
FILES: Schema = {"type": "object", "additionalProperties": SHA}
ANY: Schema = {}


def one_of(words: Any, *more: str) -> Schema:
    """A text that is one of the words of a Literal."""
    return {"enum": [*get_args(words), *more]}


@dataclass(frozen=True, slots=True)
class Field:
    """One key of a record. ``needed``: every line that this program writes has it."""

    name: str
    schema: Schema
    says: str
    needed: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of record: its name and what it is for, in words, and its own keys."""

    name: str
    says: str
    fields: tuple[Field, ...]

    def json_schema(self, envelope: tuple[Field, ...] = ()) -> dict[str, Any]:
        both = (*envelope, *self.fields)
        return {
            "type": "object",
            "properties": {f.name: dict(f.schema) for f in both},
            "required": [f.name for f in both if f.needed],
        }


def need(name: str, schema: Schema, says: str) -> Field:
    return Field(name, schema, says, needed=True)


STAMP = (
    need("v", {"const": 1}, "version of the format"),
    need("seq", {"type": "integer", "minimum": 1}, "one counter per run over journal and transcript"),
    need("t", TIME, "when it was written, UTC"),
    need("run", TEXT, "the run"),
)
LINK = need(
    "link", TEXT, "first 16 hex digits of the SHA-256 of the line before it in this file; '' on the first"
)
BLOBS = Field("blobs", TEXTS, "SHA-256 of texts that were too long for the line: `runs/<run>/blobs/<sha>`")

EVENT_ENVELOPE = (
    *STAMP,
    need("kind", TEXT, "which event"),
    LINK,
    Field("files", FILES, "files that the line brings: path in the workspace -> SHA-256"),
    BLOBS,
)
