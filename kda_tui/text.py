"""Cleaning and redacting text, and the error that a user is meant to read."""

from __future__ import annotations


class UserError(Exception):
    """A mistake or a state that the user can mend: one line that says what, where, and how."""
