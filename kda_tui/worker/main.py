"""One worker process: lock, open or begin the run, drive it, give everything back."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kda_tui.agents.load import agent_secrets, make_agent, make_reviewer
from kda_tui.config import Config, load_config
from kda_tui.evaluation.client import JudgeProcess
from kda_tui.evaluation.devices.choose import open_device
from kda_tui.record.contract import Contract, load_contract
from kda_tui.record.lock import WorkspaceLock
from kda_tui.record.paths import Workspace
from kda_tui.text import Redactor, UserError
from kda_tui.worker import attention
from kda_tui.worker.budget import level, limits
from kda_tui.worker.clerk import Clerk
from kda_tui.worker.dispatch import Judge, StartJudge
from kda_tui.worker.loop import Worker
from kda_tui.worker.resume import Opened, open_run, require_trust
from kda_tui.worker.start import RunOptions

log = logging.getLogger("kda.worker")


async def start_real_judge(cache_dir: Path, log: Path) -> Judge:
    return await JudgeProcess.start(cache_dir, log)


def run_worker(
    ws: Workspace,
    options: RunOptions,
    *,
    own_log: bool = True,
    start_judge: StartJudge = start_real_judge,
) -> str:
    """Work on a workspace until its run ends ("ended") or SIGTERM ("stopped"). Raises UserError.

    ``own_log`` moves stdout and stderr to runs/<run>/worker.log once there is a run.
    """
    config = load_config(ws.root)
    agent = make_agent(options.agent, config)
    if options.model:
        agent.model = options.model
    require_trust(ws)
    contract = load_contract(ws.contract)
    if options.device and options.device != contract.task.device:
        raise UserError(
            f"{ws.contract}: the contract's device is {contract.task.device}, not {options.device}; "
            "times of another device would say nothing about this task"
        )
    cache = cache_folder(config)
    device = dict(open_device(contract.task.device, cache).describe())
    redactor = Redactor.from_environment({**os.environ, **agent_secrets(config)})
    with WorkspaceLock.acquire(ws) as lock:
        opened = open_run(
            ws, lock, redactor, agent, device=device, resume=options.resume, ambiguous=config.resume.ambiguous
        )
        try:
            if own_log:
                _move_output(opened.clerk.paths.log)
            _at_start(opened, options, config, contract)
            return asyncio.run(_drive(opened, options, config, start_judge, cache, agent))
        finally:
            opened.clerk.close()


async def _drive(
    opened: Opened, options: RunOptions, config: Config, start_judge: StartJudge, cache: Path, agent: Any
) -> str:
    hooks: set[asyncio.Task[Any]] = set()

    def tell(what: str, facts: Mapping[str, Any]) -> None:
        command = config.attention.command
        if command:
            clerk = opened.clerk
            body = {"what": what, "workspace": str(clerk.ws.root), "run": clerk.run, **facts}
            task = asyncio.create_task(attention.call(command, body))
            hooks.add(task)
            task.add_done_callback(hooks.discard)

    worker = Worker(
        opened.clerk,
        agent,
        opened.secret,
        start_judge,
        cache,
        yes=options.yes,
        tell=tell,
        tick_s=config.worker.inbox_interval_s,
        reviewer=make_reviewer(agent, config),
    )
    loop = asyncio.get_running_loop()
    for sig in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(sig, worker.stop)
    outcome = await worker.run()
    if hooks:
        await asyncio.wait(hooks, timeout=attention.TIMEOUT_S + 1)
    return outcome


def _at_start(opened: Opened, options: RunOptions, config: Config, contract: Contract) -> None:
    """What flags and settings say about this run: limits where the contract has none, a hold after crashes."""
    clerk = opened.clerk
    if opened.new:
        settings = config.budget
        wanted = {"candidates": settings.candidates, "hours": settings.hours, "usd": settings.usd}
        for axis, limit in limits(clerk.snap, contract).items():
            if limit is None and wanted[axis]:
                _set_limit(clerk, axis, wanted[axis])
    if options.max_candidates is not None:
        known = limits(clerk.snap, contract)["candidates"]
        _set_limit(clerk, "candidates", min(options.max_candidates, known or options.max_candidates))
    if options.hold and not clerk.snap.hold and clerk.snap.phase != "ended":
        clerk.event("hold", on=True, why=options.hold, text="the worker died three times in ten minutes")


def _set_limit(clerk: Clerk, axis: str, limit: float) -> None:
    line = clerk.snap.budget.get(axis)
    used = line.used if line is not None else 0.0
    clerk.event("budget", axis=axis, used=used, limit=limit, level=level(used, limit))


def cache_folder(config: Config) -> Path:
    """Compiled kernels; may be deleted at any time."""
    if config.evaluation.cache:
        return Path(config.evaluation.cache).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "kda"


def _move_output(path: Path) -> None:
    """Write to the run's own log from here on."""
    sys.stdout.flush()
    sys.stderr.flush()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    try:
        os.dup2(handle, 1)
        os.dup2(handle, 2)
    finally:
        os.close(handle)
