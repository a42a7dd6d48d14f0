"""The device that a contract names, on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from kda_tui.config import load_config
from kda_tui.evaluation.devices.interface import Device
from kda_tui.text import UserError


class NoDevice(UserError):
    """This machine cannot run the contract's device."""


def open_device(kind: str, cache: Path, mode: Literal["judge", "debug"] = "judge") -> Device:
    """The device; raises NoDevice (or the device's own UserError) saying what is missing.

    ``mode`` "debug" allows printf and assert; what it measures or passes counts for nothing.
    """
    if kind == "cpu":
        from kda_tui.evaluation.devices.cpu.compiler import find_compiler
        from kda_tui.evaluation.devices.cpu.device import CpuDevice

        settings = load_config().evaluation
        compiler = find_compiler(settings.compiler)
        return CpuDevice(settings.cpu_threads or None, cache, mode, compiler)
    try:
        from kda_tui.evaluation.devices.cuda.device import CudaDevice

        return CudaDevice(cache=cache)
    except (ImportError, OSError, RuntimeError) as error:
        raise NoDevice(
            f'the contract says device = "cuda", which this machine does not have ({error}): see `kda doctor`'
        ) from error
