"""Why the GPU's clocks are held down, from NVML: heat and hardware void a block, a power cap is only noted."""

from __future__ import annotations

from functools import cache
from typing import Any

# nvmlClocksEventReasons bits (nvml.h)
_VOIDING = {
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}


def voiding(bits: int) -> tuple[str, ...]:
    """The words of those reasons that make a block worthless; a software power cap (0x4) is none."""
    return tuple(word for bit, word in _VOIDING.items() if bits & bit)


@cache
def _handle(uuid: str) -> Any:
    """NVML's handle of a GPU, or None where NVML is missing or does not know it."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return pynvml.nvmlDeviceGetHandleByUUID(dashed(uuid))
    except Exception:  # no library, no driver, no permission: then nothing is known
        return None


def dashed(uuid: str) -> str:
    """``GPU-<32 hex>`` as NVML writes it."""
    digits = uuid.removeprefix("GPU-").replace("-", "")
    return f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def disturbances(uuid: str) -> tuple[str, ...]:
    """What holds the clocks down right now; empty where nothing does or NVML cannot say."""
    handle = _handle(uuid)
    if handle is None:
        return ()
    import pynvml

    try:
        return voiding(int(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)))
    except (pynvml.NVMLError, AttributeError):
        return ()
