"""Text that reaches a terminal is safe, and secrets do not reach the record."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kda_tui.text import Redactor, StreamRedactor, cell_width, clean, clean_line, is_secret

KEY = "sk-ant-api03-AbCdEfGh"
anything = st.text(alphabet=st.characters(exclude_categories=()), max_size=80)


@given(anything)
def test_clean_leaves_nothing_that_a_terminal_obeys(s: str) -> None:
    for c in clean(s):
        assert c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs"), hex(ord(c))
        assert c not in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029"
    assert clean(clean(s)) == clean(s)


@given(anything, st.integers(0, 30))
def test_clean_line_is_one_line_of_at_most_the_width(s: str, width: int) -> None:
    line = clean_line(s, width)
    assert cell_width(line) <= width
    assert "\n" not in line and "\t" not in line


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain ümlaut 漢字 👩‍💻", "plain ümlaut 漢字 👩‍💻"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]52;c;aGk=\x07", "␛]52;c;aGk=␇"),
        ("a\r\nb\rc", "a\nb␍c"),
        ("\x9b31m", "\\x9b31m"),
        (b"caf\xe9".decode("utf-8", "surrogateescape"), "caf\\xe9"),
        ("if (x\u202e)", "if (x<U+202E>)"),
        ("nul\x00", "nul␀"),
    ],
)
def test_what_was_there_can_be_seen(raw: str, shown: str) -> None:
    assert clean(raw) == shown


def test_a_line_is_cut_with_an_ellipsis() -> None:
    assert clean_line("hello world", 8) == "hello w…"
    assert clean_line("漢字漢字", 5) == "漢字…"
    assert clean_line("two\nlines\tand a tab") == "two lines and a tab"


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("ANTHROPIC_API_KEY", KEY, True),
        ("db_password", "correct-horse-battery", True),
        ("MY_CREDENTIALS", "0123456789abcdef", True),
        ("HOME", "/home/someone/with/a/long/path", False),
        ("API_KEY", "short", False),
        ("TOKEN_KIND", "authentication", False),
        ("KEY_PROVIDER", "Internationalization", False),
        ("MAX_TOKENS", "10000000000000000", False),
        ("MAX_TOKENS", "1_000_000_000_000.5e10", False),
    ],
)
def test_what_counts_as_a_secret(name: str, value: str, secret: bool) -> None:
    assert is_secret(name, value) is secret


def test_redaction_reaches_into_parsed_values_only() -> None:
    redactor = Redactor.from_environment({"ANTHROPIC_API_KEY": KEY + "\n", "HOME": "/root"})
    value = {"cmd": [f"curl -H {KEY}"], KEY: 1, "n": 2.5, "none": None, "t": (KEY,)}
    mark = "[redacted ANTHROPIC_API_KEY]"
    assert redactor.redact(value) == {
        "cmd": [f"curl -H {mark}"],
        mark: 1,
        "n": 2.5,
        "none": None,
        "t": [mark],
    }
    assert redactor.holds_secret(f"#define KEY {KEY}") == "ANTHROPIC_API_KEY"
    assert redactor.holds_secret("nothing here") is None


def test_the_longer_of_two_secrets_wins() -> None:
    redactor = Redactor({"A_KEY": "abcdefgh12345678", "B_KEY": "abcdefgh12345678-and-more"})
    assert redactor.redact_text("x abcdefgh12345678-and-more y") == "x [redacted B_KEY] y"


secrets = st.dictionaries(st.sampled_from(["A", "B", "C"]), st.text("ab", min_size=1, max_size=6), max_size=3)


@given(secrets, st.lists(st.text("abc", max_size=7), max_size=12))
def test_a_stream_split_anywhere_is_redacted_as_the_whole_text(
    known: dict[str, str], pieces: list[str]
) -> None:
    redactor = Redactor(known)
    stream = StreamRedactor(redactor)
    shown = [stream.feed(piece) for piece in pieces]
    assert "".join(shown) + stream.flush() == redactor.redact_text("".join(pieces))


def test_a_stream_never_shows_the_beginning_of_a_secret() -> None:
    stream = StreamRedactor(Redactor({"API_KEY": KEY}))
    assert "".join(stream.feed(c) for c in "the key is " + KEY[:-1]) == "the key is "[: len("the key is ")]
    assert stream.feed(KEY[-1]) == "[redacted API_KEY]"


def test_without_secrets_a_stream_holds_nothing_back() -> None:
    assert StreamRedactor(Redactor({})).feed("at once") == "at once"
