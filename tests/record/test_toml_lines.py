"""Line numbers of keys in any TOML, and hostile texts that must end in one clear line."""

from __future__ import annotations

import tomllib

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from kda_tui.toml_lines import MAX_BYTES, TomlError, parse_toml

TEXT = '''\
top = 1  # [no.header]
list = [ 1,
  [2, 3],
  {x = 1, "y z".w = """
a ]] } [
k = 5
"""}, ]
["quoted \\u0041"]
date = 1979-05-27 07:32:00
[[step]]
s = """ \\""" """""
t = \'\'\'
[step]
\'\'\'
[[step.arg]]
z = 1
[[step]]
a.b.c = "#"
[[step.arg]]
[[step.arg]]
z = 3
'''


def test_every_key_has_its_line() -> None:
    _, lines = parse_toml(TEXT.encode(), "x.toml")
    expected = {
        ("top",): 1,
        ("list",): 2,
        ("list", 0): 2,
        ("list", 1, 1): 3,
        ("list", 2, "x"): 4,
        ("list", 2, "y z", "w"): 4,
        ("quoted A",): 8,
        ("quoted A", "date"): 9,
        ("step",): 10,
        ("step", 0, "s"): 11,
        ("step", 0, "t"): 12,
        ("step", 0, "arg", 0, "z"): 16,
        ("step", 1): 17,
        ("step", 1, "a", "b", "c"): 18,
        ("step", 1, "arg", 1, "z"): 21,
    }
    assert {key: lines.of(key) for key in expected} == expected
    assert lines.of(("step", 1, "arg", 1, "absent", 3)) == 20
    assert lines.of(("absent",)) == 1


def test_line_ends_and_marks_of_other_systems() -> None:
    document, lines = parse_toml(b"\xef\xbb\xbfa = 1\r\nb = '\xe2\x80\xa8'\r\nc = 3\r\n", "x.toml")
    assert document["c"] == 3
    assert lines.of(("c",)) == 3


@pytest.mark.parametrize(
    ("data", "line", "said"),
    [
        (b"a = 1\nb = \n", 2, "not TOML"),
        (b"a = 1\na = 2\n", 2, "not TOML: cannot overwrite"),
        (b"\n\nx = [1,\n 2\n", 4, "not TOML"),
        (b"a = 'x\x00'", 1, "not TOML"),
        (b"ok = 1\n\xff = 2", 2, "not UTF-8"),
        ("a = 1".encode("utf-16"), 1, "UTF-16"),
        (b"x" * (MAX_BYTES + 1), 1, "larger than"),
        (b"y = 1\nx = " + b"[" * 5000, 2, "32 deep"),
        (b"x = " + b"{a = " * 5000, 1, "32 deep"),
        (b"a." * 100_000 + b"b = 1", 1, "32 deep"),
        (b"[" + b"a." * 100_000 + b"b]", 1, "32 deep"),
        (b"a = " + b"9" * 10_000, 1, "digits"),
        (b'a = "' + b"x" * 100_000, 1, "not TOML"),
        (b'a = """' + b'x"' * 50_000, 1, "not TOML"),
    ],
)
def test_what_is_no_toml_is_one_line_with_its_place(data: bytes, line: int, said: str) -> None:
    with pytest.raises(TomlError) as caught:
        parse_toml(data, "x.toml")
    assert f"x.toml, line {line}: " in str(caught.value)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


KEYS = st.text(alphabet="abAZ09-_ .\"'\\#[]=é\n", max_size=6)
VALUES = st.recursive(
    st.integers(-5, 5)
    | st.text(alphabet="ab\"'\\\n#[]{}=, ", max_size=12)
    | st.booleans()
    | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(document=st.dictionaries(KEYS, VALUES, max_size=5), multiline=st.booleans())
def test_the_scan_knows_every_key_that_tomllib_reads(document: dict[str, object], multiline: bool) -> None:
    text = tomli_w.dumps(document, multiline_strings=multiline)
    parsed, lines = parse_toml(text.encode(), "x.toml")
    assert parsed == tomllib.loads(text)
    last = text.count("\n") + 1

    def look(value: object, key: tuple[str | int, ...]) -> None:
        assert lines.has(key), key
        assert 1 <= lines.of(key) <= last
        if isinstance(value, dict):
            for name, inner in value.items():
                look(inner, (*key, name))
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                look(inner, (*key, index))

    look(parsed, ())


@given(data=st.binary(max_size=60) | st.text(alphabet="ab=[]{}.\"'#\\\n ,1-", max_size=60).map(str.encode))
def test_rubbish_parses_as_tomllib_says_or_is_refused(data: bytes) -> None:
    try:
        expected = tomllib.loads(data.decode("utf-8-sig"))
    except ValueError:
        with pytest.raises(TomlError):
            parse_toml(data, "x.toml")
    else:
        assert str(parse_toml(data, "x.toml")[0]) == str(expected)
