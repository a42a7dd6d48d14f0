"""kda bench: this evaluator beside others, on the GPU of this machine."""

from __future__ import annotations

import click

from kda_tui.cli.entry import Unavailable
from kda_tui.cli.folders import cache_folder
from kda_tui.cli.output import print_json, say
from kda_tui.cli.target import json_option


@click.command("bench")
@click.option("--repeats", type=click.IntRange(2, 50), default=5, show_default=True, help="Runs of each.")
@json_option
def bench_command(repeats: int, as_json: bool) -> int:
    """Compare seconds from source to verdict, and the spread of the time, with triton's do_bench and flashinfer-bench."""
    from kda_tui.evaluation.peers import compare_peers

    def on_run(name: str, seconds: float, us: float) -> None:
        if not as_json:
            say(f"{name:20} {seconds:8.2f} s  {us:8.2f} us")

    peers = compare_peers(cache_folder(), repeats, on_run)
    ours = peers[0]
    if ours.missing:
        raise Unavailable(f"nothing to compare with: {ours.missing}")
    if as_json:
        print_json([{"name": p.name, "seconds": p.seconds, "us": p.us, "missing": p.missing} for p in peers])
        return 0
    for peer in peers:
        if peer.missing or not peer.us:
            say(f"{peer.name}: not measured ({peer.missing})")
            continue
        ratio = peer.median_s / ours.median_s
        wider = peer.spread / ours.spread if ours.spread > 0 else float("inf")
        say(
            f"{peer.name:20} median {peer.median_s:.2f} s from source to verdict ({ratio:.2f} x ours), "
            f"spread of the time {peer.spread:.2%} ({wider:.1f} x ours)"
        )
    return 0
