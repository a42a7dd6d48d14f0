"""``kda mcp``: the tools of an agent as an MCP server on standard input and output, for people's own agents."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from kda_tui.cli.entry import Unavailable
from kda_tui.cli.target import find_workspace, workspace_argument
from kda_tui.record.paths import Workspace

if TYPE_CHECKING:
    from kda_tui.agents.tools.tool import Tool

ABOUT = (
    "Tools on a kda workspace: read it, submit candidates, have them evaluated and profiled. The evaluator is the "
    "only judge, and only people promote."
)


@click.command("mcp")
@workspace_argument
def mcp_command(workspace: Path | None) -> int:
    """Serve WORKSPACE to your own coding agent as an MCP server over stdio. Start it from the agent's settings."""
    ws = find_workspace(workspace)
    try:
        import mcp.server.stdio  # noqa: F401
    except ImportError as error:
        raise Unavailable("kda mcp needs the package mcp: pip install 'kda-tui[mcp]'") from error
    asyncio.run(serve(ws))
    return 0


def mcp_tools(ws: Workspace) -> list[Tool]:
    """Reading, the bench through the inbox, the state of things, and a word to people."""
    from kda_tui.agents.context import Context, shelf_of
    from kda_tui.agents.inbox_desk import InboxDesk
    from kda_tui.agents.interface import Desk
    from kda_tui.agents.skillbook import agent_skills
    from kda_tui.agents.tools.bench import bench_tools
    from kda_tui.agents.tools.files import reading_tools, wiki_tool
    from kda_tui.agents.tools.tool import Answer, Tool, inputs, text
    from kda_tui.config import load_config
    from kda_tui.record.inbox import new_decision, send

    desk = InboxDesk(ws)
    skills = agent_skills(load_config(ws.root))
    shelf = shelf_of(ws.root, desk.snapshot, skills)

    async def status(args: Mapping[str, Any]) -> Answer:
        snap = desk.snapshot
        context = Context(snap, shelf)
        parts = (
            f"* phase: {snap.phase or 'no run yet'}{f', held: {snap.hold}' if snap.hold else ''}; worker {snap.liveness}",
            context.state(),
            context.items(),
            context.results(),
            context.families(),
        )
        return Answer("\n\n".join(parts))

    async def ask_for_promotion(args: Mapping[str, Any]) -> Answer:
        words = f"asks for the promotion of {args['candidate']}: {args['reasons']}"
        send(ws, new_decision("note", via="mcp", target={"cand": args["candidate"]}, text=words))
        return Answer("people are told; one of them promotes it, or not")

    return [
        *reading_tools(shelf),
        wiki_tool(skills),
        *bench_tools(cast(Desk, desk), shelf),
        Tool(
            "status", "Where things stand: phase, incumbent, plan items, results, budget.", inputs(), status
        ),
        Tool(
            "ask_for_promotion",
            "Tell people which candidate should be promoted and by which evidence. You cannot promote.",
            inputs({"candidate": text("Its id."), "reasons": text("Why, and what could be wrong with it.")}),
            ask_for_promotion,
        ),
    ]


async def serve(ws: Workspace) -> None:
    """Until standard input ends."""
    import mcp_types as types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    tools = {tool.name: tool for tool in mcp_tools(ws)}

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        declared = [
            types.Tool(name=t.name, description=t.description, input_schema=dict(t.schema))
            for t in tools.values()
        ]
        return types.ListToolsResult(tools=declared)

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = tools.get(params.name)
        if tool is None:
            content = [types.TextContent(type="text", text=f"there is no tool {params.name}")]
            return types.CallToolResult(content=content, is_error=True)
        answer = await tool.call(dict(params.arguments or {}))
        content = [types.TextContent(type="text", text=answer.text)]
        return types.CallToolResult(content=content, is_error=answer.is_error)

    server: Any = Server("kda", instructions=ABOUT, on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
