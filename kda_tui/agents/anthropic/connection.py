"""The connection to the API: whose key, which server, how long to wait. The key is never recorded."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kda_tui.agents.anthropic.failures import Failure
from kda_tui.config import AgentConfig

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

CONNECT_S = 10.0
READ_S = 300.0  # between two pieces of a stream; the API sends pings far more often
KEY = "ANTHROPIC_API_KEY"
OTHER_WAYS = ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE")  # that the SDK itself finds


def read_key(settings: AgentConfig) -> str:
    """The key from ``api_key_file``, else from ANTHROPIC_API_KEY; empty if the SDK is to find another way.

    Raises Failure (auth) where there is none, saying where to put it.
    """
    if settings.api_key_file:
        path = Path(settings.api_key_file).expanduser()
        try:
            key = path.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not text"
            raise Failure(
                "auth", f"{path}: the API key cannot be read ({reason}); mend it, then resume"
            ) from None
        if not key:
            raise Failure("auth", f"{path}: holds no API key; put one there, then resume")
        return key
    key = os.environ.get(KEY, "").strip()
    if not key and not any(os.environ.get(name) for name in OTHER_WAYS):
        raise Failure(
            "auth", f"there is no API key: set agent.api_key_file in kda.toml, or {KEY}, then resume"
        )
    return key


def secrets(settings: AgentConfig) -> dict[str, str]:
    """What must never be recorded, by name: for the redactor."""
    try:
        key = read_key(settings)
    except Failure:
        return {}
    return {KEY: key} if key else {}


@dataclass(slots=True)
class Connection:
    """Gives out one client; a changed key gives a new one (the key is read again for every turn)."""

    settings: AgentConfig
    _client: AsyncAnthropic | None = None
    _key: str = ""

    def client(self) -> AsyncAnthropic:
        """Raises Failure (auth) where there is no key. No retries in here: each request is a claim of its own."""
        import anthropic

        key = read_key(self.settings)
        if self._client is None or key != self._key:
            self._client = anthropic.AsyncAnthropic(
                api_key=key or None,
                base_url=self.settings.base_url or None,
                max_retries=0,
                timeout=anthropic.Timeout(READ_S, connect=CONNECT_S),
            )
            self._key = key
        return self._client
