"""A tool: its schema, what it does, and the check of what a model gives it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kda_tui.text import UserError

MAX_RESULT = 48_000  # characters that go back to a model


class ToolError(UserError):
    """The call cannot be done as it is; the message goes to the model."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool gives back. ``cand``: the candidate that it is about."""

    text: str
    is_error: bool = False
    cand: str = ""


Run = Callable[[Mapping[str, Any]], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Tool:
    """``ends``: after a call that went well the conversation is over (a draft, a plan, a review)."""

    name: str
    description: str
    schema: Mapping[str, Any]
    run: Run
    ends: bool = False

    def declaration(self) -> dict[str, Any]:
        """As the Messages API wants it."""
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": dict(self.schema),
            "strict": True,
        }

    async def call(self, args: Any) -> Answer:
        """Check the arguments and run; a mistake of the model is an answer, not an exception."""
        if wrong := misfit(args, self.schema, ""):
            return Answer(f"wrong arguments: {wrong}", is_error=True)
        try:
            answer = await self.run(args)
        except ToolError as error:
            return Answer(str(error), is_error=True)
        if len(answer.text) > MAX_RESULT:
            cut = f"\n[cut: {len(answer.text)} characters, {MAX_RESULT} are shown]"
            return Answer(answer.text[:MAX_RESULT] + cut, answer.is_error, answer.cand)
        return answer


def inputs(required: Mapping[str, Any] | None = None, **optional: Any) -> dict[str, Any]:
    """The schema of an object with these fields and no others."""
    return {
        "type": "object",
        "properties": {**(required or {}), **optional},
        "required": list(required or {}),
        "additionalProperties": False,
    }


def text(description: str, choices: Iterable[str] = ()) -> dict[str, Any]:
    found = list(choices)
    return {"type": "string", "description": description, **({"enum": found} if found else {})}


def whole(description: str) -> dict[str, Any]:
    return {"type": "integer", "description": description}


def texts(description: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def objects(description: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": inputs(fields), "description": description}


def facts(body: Mapping[str, Any], cand: str = "", is_error: bool = False) -> Answer:
    """A structured result; what is None or empty is left out."""
    kept = {k: v for k, v in body.items() if v is not None and v != "" and v != [] and v != {}}
    return Answer(json.dumps(kept, ensure_ascii=False, default=str), is_error, cand)


_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
}


def misfit(value: Any, schema: Mapping[str, Any], where: str) -> str:
    """Why a value does not fit a schema of the kinds above; empty if it does."""
    kind = str(schema.get("type"))
    place = where or "the input"
    if type(value) not in _TYPES[kind]:  # exactly: a truth value is no number
        return f"{place} must be of type {kind}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{place} must be one of {', '.join(schema['enum'])}"
    if kind == "array":
        return next(
            (w for n, v in enumerate(value) if (w := misfit(v, schema["items"], f"{where}[{n}]"))), ""
        )
    if kind != "object":
        return ""
    known = schema["properties"]
    if missing := [name for name in schema["required"] if name not in value]:
        return f"{place} lacks {', '.join(missing)}"
    if extra := [name for name in value if name not in known]:
        return f"{place} has no field {extra[0]}; there are {', '.join(known)}"
    prefix = f"{where}." if where else ""
    return next((w for name, v in value.items() if (w := misfit(v, known[name], f"{prefix}{name}"))), "")
