"""Speed of verifying the whole log, sealed parts opened and left closed: by two processes."""

import asyncio
import time
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from statesvc.addons.verify.verify_log import Verification, VerificationRequest
from statesvc.addons.verify.worker_pool import LogAccess
from statesvc.database.keyring_store import parse_master_keys
from tests.acceptance.processes import MASTER_KEY
from tests.bench.bench import Bench
from tests.bench.long_log import long_log
from tests.bench.processor import own_cpu_seconds, server_cpu_seconds
from tests.bench.report import Row, rate
from tests.bench.server import Place
from tests.bench.traffic import SCANS

_PROCESSES: Final = 2
_BAR: Final = 150_000


class Speed(NamedTuple):
    """`entries_per_second` from the first stretch that is done to the last; `whole` from the
    command to the verdict, processes started.

    `cpu`: microseconds of processor an event, of the server too.
    """

    entries_per_second: float
    whole: float
    cpu: float


async def measure(bench: Bench) -> list[Row]:
    found: dict[str, list[Speed]] = {"sealed parts left closed": [], "sealed parts opened": []}
    async with bench.server.database(await long_log(bench)) as place:
        data = Path(await place.value("SHOW data_directory"))
        for run in range(bench.scale.runs):
            for name, speeds in found.items():
                speeds.append(
                    await asyncio.to_thread(_verified, place, data, opens=name.endswith("opened"))
                )
                bench.say(
                    f"verify {run + 1}, {name}: {speeds[-1].entries_per_second:,.0f} entries/s,"
                    f" {speeds[-1].whole:,.0f} with its start; {speeds[-1].cpu:.1f} us an event"
                )
    what = f"verify of {bench.scale.rebuild_events:,} events, FedEx histories of {SCANS} scans"
    return [row for name, speeds in found.items() for row in _rows(f"{what}, {name}", speeds)]


def _rows(name: str, speeds: list[Speed]) -> list[Row]:
    rates = [speed.entries_per_second for speed in speeds]
    return [
        Row(name, rate(rates, " entries/s"), f">= {_BAR:,} entries/s", median(rates) >= _BAR),
        Row(
            "... with the start of its processes",
            rate([speed.whole for speed in speeds], " entries/s"),
        ),
        Row(
            "... processor time, server included",
            f"{median(speed.cpu for speed in speeds):.1f} us an event",
        ),
    ]


def _verified(place: Place, data: Path, *, opens: bool) -> Speed:
    seen: list[tuple[float, int]] = []
    access = LogAccess(
        dsn=place.service, master_keys=parse_master_keys(MASTER_KEY).keys if opens else None
    )
    order = VerificationRequest(access=access, processes=_PROCESSES)
    began, cpu = time.perf_counter(), own_cpu_seconds() + server_cpu_seconds(data)
    report = Verification(order, lambda done, _: seen.append((time.perf_counter(), done))).run()
    ended, cpu = time.perf_counter(), own_cpu_seconds() + server_cpu_seconds(data) - cpu
    if not report.consistent:
        raise RuntimeError(f"the log was changed: {report.faults[0]}")
    (first_at, first), (last_at, last) = seen[0], seen[-1]
    return Speed(
        entries_per_second=(last - first) / max(last_at - first_at, 1e-9),
        whole=report.entries / (ended - began),
        cpu=cpu * 1e6 / report.events,
    )
