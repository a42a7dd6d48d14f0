"""Widgets on Textual's line API."""
