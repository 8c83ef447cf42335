"""Waiting times for what can be asked of a shipment with 3,000 scans, over HTTP."""

from statistics import median
from time import perf_counter
from typing import Final

import aiohttp

from tests.acceptance.processes import BOOTSTRAP_KEY, until_false
from tests.bench.bench import Bench
from tests.bench.long_shipment import LONG_SHIPMENT, LONG_SHIPMENT_EVENTS, submit_long_shipment
from tests.bench.report import Row
from tests.bench.whole import WholeService, whole_service

_READS: Final = 5
_FORMS: Final = (
    ("evidence as JSON", "evidence", "application/json", 1.0),
    ("... as a page", "evidence", "text/html", None),
    ("... as a PDF, the document of at most 18 pages", "evidence", "application/pdf", 5.0),
    ("... as a PDF, the annex with everything", "evidence?part=annex", "application/pdf", 5.0),
    ("its audit trail, the first page", "audit", "application/json", None),
)


async def measure(bench: Bench) -> list[Row]:
    async with bench.server.database() as place, whole_service(bench, place) as service:
        await submit_long_shipment(service)
        await until_false(lambda: place.value("SELECT EXISTS (SELECT FROM statesvc.unsealed)"))
        rows = []
        for what, call, accept, bar_seconds in _FORMS:
            first, *others = [
                await _read(service, f"{LONG_SHIPMENT}/{call}", accept) for _ in range(_READS + 1)
            ]
            bench.say(
                f"{what}: first {first[0]:.2f} s, then"
                f" {[round(seconds, 2) for seconds, _ in others]}"
            )
            seconds = median(seconds for seconds, _ in others)
            measured = f"{seconds:.2f} s, the first {first[0]:.2f} s; {first[1] / 1e6:.1f} MB"
            rows.append(
                Row(
                    what
                    if what.startswith("...")
                    else f"a shipment of {LONG_SHIPMENT_EVENTS:,} events: {what}",
                    measured,
                    "" if bar_seconds is None else f"< {bar_seconds:.0f} s",
                    None if bar_seconds is None else seconds < bar_seconds,
                )
            )
        return rows


async def _read(service: WholeService, path: str, accept: str) -> tuple[float, int]:
    """Return seconds and bytes of one answer. Raises RuntimeError where it is refused."""
    headers = {"Authorization": f"Bearer {BOOTSTRAP_KEY}", "Accept": accept}
    began = perf_counter()
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.get(f"{service.url}{path}") as answer,
    ):
        body = await answer.read()
        if not answer.ok:
            raise RuntimeError(f"{path} as {accept} was refused: {answer.status} {body[:200]!r}")
    return perf_counter() - began, len(body)
