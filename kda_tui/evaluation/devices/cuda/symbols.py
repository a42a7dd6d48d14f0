"""What a compiled unit's folder says of it; read by the child too, so nothing heavy is imported here."""

from __future__ import annotations

import json
from pathlib import Path


def symbols(cubin: str) -> dict[str, str]:
    """Kernel name to symbol for a cubin of the cache."""
    facts = json.loads((Path(cubin).parent / "report.json").read_text())
    return dict(facts["names"])
