"""``kda mcp`` as a coding agent sees it: through the official client, over stdio, beside a worker."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from kda_tui.agents.inbox_desk import InboxDesk
from kda_tui.cli.mcp_server import mcp_tools
from kda_tui.record.paths import Workspace
from tests.worker.make import KERNEL, launch, make_workspace
from tests.worker.stage import stage


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    for name in ("STATE", "CONFIG", "CACHE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("KDA_USER", "ann")
    return make_workspace(tmp_path / "scale")


def mine(**more: Any) -> dict[str, Any]:
    given = {
        "kernel": KERNEL,
        "launch": launch(48, 2).replace("[16, 32, 64]", "[48]").replace("[8, 1]", "[2]"),
    }
    return {
        **given,
        "hypothesis": "two rounds",
        "family": "mine",
        "parents": ["baseline"],
        "item": "",
        **more,
    }


async def test_orders_go_through_the_inbox_and_results_come_from_the_record(ws: Workspace) -> None:
    tools = {t.name: t for t in mcp_tools(ws)}
    assert not {"request_end", "write_plan", "ask_human", "item", "request_promotion"} & set(tools)
    alone = await tools["submit_candidate"].call(mine())
    assert alone.is_error and "kda run" in alone.text
    for waiting in ws.inbox.iterdir():
        waiting.unlink()
    async with stage(ws, yes=("plan",)) as s:
        await s.until(lambda x: x.phase == "iterate")
        submitted = json.loads((await tools["submit_candidate"].call(mine())).text)
        cand = submitted["candidate"]
        assert submitted["compiled"] and s.snap.candidates[cand].author == "person"
        verdict = json.loads((await tools["evaluate"].call({"candidate": cand})).text)
        assert verdict["validity"] == "passed" and verdict["speed"]
        again = await tools["submit_candidate"].call(mine())
        assert again.is_error and f"the same source is {cand}" in again.text
        assert "needs an NVIDIA GPU" in (await tools["profile"].call({"candidate": cand})).text
        first = s.snap.candidates[cand].eval
        await tools["evaluate"].call({"candidate": cand})
        assert s.snap.candidates[cand].eval != first, "judged before: it is measured again"
        said = await tools["ask_for_promotion"].call({"candidate": cand, "reasons": "it is faster"})
        assert not said.is_error
        note = (await s.until(lambda x: [d for d in x.decisions if d.kind == "note"]))[0]
        assert note.via == "mcp" and "it is faster" in note.text and s.snap.incumbent.cand == "baseline"
        assert cand in (await tools["status"].call({})).text


async def test_an_order_that_nobody_takes_does_not_wait_for_ever(ws: Workspace) -> None:
    answer = await InboxDesk(ws, wait_s=5.0).profile("c0001")
    assert "no worker is alive" in answer


async def test_the_official_client_sees_the_tools(ws: Workspace) -> None:
    mcp = pytest.importorskip("mcp", reason="the extra kda-tui[mcp] is not installed")
    from mcp.client.stdio import StdioServerParameters, stdio_client

    server = StdioServerParameters(
        command=sys.executable, args=["-m", "kda_tui", "mcp", str(ws.root)], env=dict(os.environ)
    )
    async with stdio_client(server) as (read, write), mcp.ClientSession(read, write) as session:
        await session.initialize()
        listed = (await session.list_tools()).tools
        assert {"submit_candidate", "evaluate", "read_file", "search_wiki", "status"} <= {
            t.name for t in listed
        }
        answer = await session.call_tool("read_file", {"path": "contract.toml"})
        assert not answer.is_error and 'name = "scale"' in answer.content[0].text
        refused = await session.call_tool("read_file", {"path": "../secret"})
        assert refused.is_error


def test_without_the_package_one_line_says_what_to_install(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from kda_tui.cli.entry import run

    monkeypatch.setitem(sys.modules, "mcp", None)
    assert run(["mcp", str(ws.root)]) == 3
    assert "kda-tui[mcp]" in capsys.readouterr().err
