"""`statesvc workers`: the running processes, when each was last seen, and what they hold."""

import argparse
import asyncio
from dataclasses import asdict

from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.session import service_connection
from statesvc.operations.worker_list import list_workers, rescues_last_hour
from statesvc.settings.service_settings import load_settings


def configure(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    """Prints the list."""
    return asyncio.run(_run(as_json=options.json))


async def _run(*, as_json: bool) -> int:
    async with service_connection(load_settings()) as connection:
        found = await list_workers(connection)
        rescues = await rescues_last_hour(connection)
    if as_json:
        write_json({"workers": [asdict(worker) for worker in found], "rescues_last_hour": rescues})
        return 0
    write_table(
        ("WORKER", "STATE", "ROLE", "VERSION", "SEEN", "STARTED", "LEASES", "LOST IN A DAY"),
        [
            (
                worker.worker_id,
                worker.state.value,
                worker.role,
                worker.version,
                None if worker.seen_seconds_ago is None else f"{worker.seen_seconds_ago:.0f} s ago",
                worker.started_at.isoformat(timespec="seconds") if worker.started_at else None,
                worker.leases,
                worker.leases_lost,
            )
            for worker in found
        ],
    )
    write_line(f"messages taken over from a worker whose lease had ended, in the last hour: {rescues}")
    return 0
