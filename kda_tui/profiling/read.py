"""Read a profile of any form, anywhere: no GPU, no toolkit."""

from __future__ import annotations

import stat
from pathlib import Path

from kda_tui.profiling.model import Profile
from kda_tui.profiling.read_csv import is_csv, read_csv
from kda_tui.profiling.read_text import is_text, read_text
from kda_tui.text import UserError

MAX_TEXT_BYTES = 64 << 20


def read_profile(path: Path) -> Profile:
    """The profile in ``path`` (``.ncu-rep``, CSV or text). Raises UserError when there is none to read."""
    try:
        info = path.stat()
    except OSError as error:
        raise UserError(
            f"{path}: cannot be read ({error.strerror}); give a .ncu-rep, CSV or text file"
        ) from error
    if not stat.S_ISREG(info.st_mode):
        raise UserError(f"{path}: not a file; give a .ncu-rep, CSV or text file")
    if path.suffix == ".ncu-rep":
        from kda_tui.profiling.read_rep import read_rep

        return read_rep(path)
    if info.st_size > MAX_TEXT_BYTES:
        raise UserError(
            f"{path}: {info.st_size >> 20} MB of text is more than {MAX_TEXT_BYTES >> 20} MB; give the .ncu-rep"
        )
    text = _decode(path.read_bytes())
    if is_csv(text):
        return read_csv(text, str(path))
    if is_text(text):
        return read_text(text, str(path))
    raise UserError(f"{path}: neither an ncu report, nor an ncu CSV, nor ncu's text")


def _decode(data: bytes) -> str:
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return data.decode(encoding, errors="replace").replace("\x00", "\ufffd")
