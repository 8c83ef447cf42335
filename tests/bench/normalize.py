"""Speed of each carrier's normalizer: one core, no database, the repository's own fixtures."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from statistics import median
from typing import Final

from events.carriers import CARRIERS
from events.carriers.carrier import Carrier
from events.errors import UnreadableMessageError
from tests.bench.bench import ROOT, Bench
from tests.bench.report import Row

_FIXTURES: Final = ROOT / "tests" / "events" / "carriers" / "fixtures"
_RECEIVED_AT: Final = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


async def measure(bench: Bench) -> list[Row]:
    rows = []
    for carrier_id, carrier in CARRIERS.items():
        bodies = readable(carrier)
        if not bodies:
            rows.append(Row(f"normalize {carrier_id}", "skipped: no fixtures that can be read"))
            continue
        seconds = [
            _seconds_a_round(carrier, bodies, bench.scale.normalize_seconds)
            for _ in range(bench.scale.runs)
        ]
        middle = median(seconds)
        readings = sum(bodies.values())
        rows.append(
            Row(
                f"normalize {carrier_id}, {len(bodies)} fixtures, {readings} events",
                f"{len(bodies) / middle:,.0f} messages/s, {readings / middle:,.0f} events/s",
            )
        )
    return rows


def readable(carrier: Carrier) -> Mapping[bytes, int]:
    """Return the carrier's fixtures that hold events, with how many."""
    found = {}
    for path in sorted((_FIXTURES / carrier.carrier_id).glob("*")):
        if not path.is_file():
            continue
        body = path.read_bytes()
        try:
            readings = len(carrier.normalizers[carrier.stable](body, _RECEIVED_AT).readings)
        except UnreadableMessageError:
            continue
        if readings:
            found[body] = readings
    return found


def _seconds_a_round(carrier: Carrier, bodies: Mapping[bytes, int], seconds: float) -> float:
    normalizer = carrier.normalizers[carrier.stable]
    rounds = 0
    started = time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        for body in bodies:
            normalizer(body, _RECEIVED_AT)
        rounds += 1
    return elapsed / rounds
