"""`make bench`: measures, prints what was measured next to its bar, and never fails
for a bar that is missed.
"""

import argparse
import asyncio
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

import uvloop

from tests.bench import (
    ack,
    archive,
    awaited,
    batch,
    claim,
    cost,
    day,
    evidence,
    expectations,
    footprint,
    ingest,
    memory,
    neighbours,
    normalize,
    parcels,
    promises,
    rebuild,
    saturation,
    sealing,
    search,
    steady,
    storm,
    telemetry,
    verifying,
    volume,
    worker,
    years,
)
from tests.bench.bench import Bench
from tests.bench.environment import disk, load, machine, server_settings
from tests.bench.publish import publish
from tests.bench.report import Row, table
from tests.bench.scale import QUICK, Scale
from tests.bench.server import BenchServer

PARTS: Final = {
    "normalize": normalize.measure,
    "cost": cost.measure,
    "batch": batch.measure,
    "worker": worker.measure,
    "day": day.measure,
    "telemetry": telemetry.measure,
    "memory": memory.measure,
    "claim": claim.measure,
    "archive": archive.measure,
    "ingest": ingest.measure,
    "ack": ack.measure,
    "saturation": saturation.measure,
    "neighbours": neighbours.measure,
    "evidence": evidence.measure,
    "storm": storm.measure,
    "rebuild": rebuild.measure,
    "sealing": sealing.measure,
    "verify": verifying.measure,
    "expectations": expectations.measure,
    "awaited": awaited.measure,
    "parcels": parcels.measure,
    "promises": promises.measure,
    "search": search.measure,
    "years": years.measure,
    "volume": volume.measure,
    "footprint": footprint.measure,
    "steady": steady.measure,
}


async def run(scale: Scale, parts: list[str], *, write: bool) -> int:
    """Measure the parts; return 1 where one of them broke, which says nothing about bars."""
    this = asyncio.current_task()
    assert this is not None
    # told to end, the server and its data still go away
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this.cancel)
    folder = Path(tempfile.mkdtemp(prefix="statesvc-bench-"))
    server = BenchServer(folder)
    broken = 0
    try:
        await server.start()
        facts = [*machine(), await server_settings(server.root.superuser)]
        conditions = f"{disk(folder)}; load average {load()} at the start"
        _print("\n".join([*facts, conditions]))
        measured: dict[str, list[Row]] = {}
        for name in parts:
            sys.stderr.write(f"{name} (load average {load()})\n")
            try:
                found = await PARTS[name](Bench(server=server, scale=scale, folder=folder))
            # one part that breaks must not take the others' figures along
            except Exception as error:  # noqa: BLE001
                broken = 1
                found = [Row(name, f"broken: {type(error).__name__}: {error}".replace("\n", " "))]
            measured[name] = found
            _print("\n" + table(found))
        if write:
            publish(
                measured,
                facts,
                f"medians of {scale.runs} runs; {conditions}, {load()} at the end",
                order=list(PARTS),
            )
    finally:
        server.stop()
    return broken


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench ARGS=...", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all"
    )
    parser.add_argument(
        "--runs", type=int, help="runs a figure is the median of (default 3, with --quick 1)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="short runs, to see that nothing broke"
    )
    parser.add_argument(
        "--events", type=int, help="of the log that the part `years` fills (default 10 million)"
    )
    parser.add_argument(
        "--write", action="store_true", help="put the figures into docs/bench.md and docs/bench/"
    )
    asked = parser.parse_args()
    unknown = sorted(set(asked.parts) - set(PARTS))
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}")
    scale = QUICK if asked.quick else Scale()
    if asked.runs:
        scale = replace(scale, runs=asked.runs)
    if asked.events:
        scale = replace(scale, years_events=asked.events)
    return uvloop.run(run(scale, asked.parts or list(PARTS), write=asked.write))


if __name__ == "__main__":
    sys.exit(main())
