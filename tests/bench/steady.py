"""All roles at half of what they carry, for half an hour: what grows from one portion of the load
to the next shows here.

The load comes in portions, for the bodies of each are made ahead. Memory is read after each, with
the service idle again.
"""

from statistics import median
from typing import Any, Final

from tests.bench.bench import Bench, child
from tests.bench.drain import until_empty
from tests.bench.report import Row, percentile
from tests.bench.saturation import LAGS
from tests.bench.server import Place
from tests.bench.subscriber import subscriber
from tests.bench.whole import WholeService, whole_service

_WIRES: Final = 256
_GROWTH: Final = 1.2
_LATELY: Final = f"{LAGS} WHERE m.settled_at > now() - interval '1 minute'"
_DEAD_LETTERS: Final = "SELECT count(*) FROM statesvc.dead_letter"


async def measure(bench: Bench) -> list[Row]:
    scale = bench.scale
    portions: list[dict[str, Any]] = []
    async with (
        bench.server.database() as place,
        subscriber() as url,
        whole_service(bench, place) as service,
    ):
        await service.post("/v1/subscriptions", {"url": url, "statuses": ["delivered"]})
        for portion in range(scale.steady_seconds // scale.steady_portion_seconds):
            portions.append(seen := await _portion(bench, place, service, portion))
            bench.say(
                f"steady {portion + 1}: ACK p50 {seen['p50'] * 1e3:.1f}, p99"
                f" {seen['p99'] * 1e3:.1f} ms, visible p50 {seen['visible'] * 1e3:.1f} ms,"
                f" {seen['pss'] / 1e6:.0f} MB, {seen['statuses']}"
            )
        dead = await place.value(_DEAD_LETTERS)
    third = max(1, len(portions) // 3)
    refused = sum(
        count for seen in portions for status, count in seen["statuses"].items() if status != "200"
    )
    load = (
        f"{scale.steady_seconds / 60:.1f} minutes at {scale.steady_rate:,} messages/s, mixed load,"
        " all roles"
    )
    return [
        Row(f"{load}: refused", f"{refused:,}", "0", refused == 0),
        Row("... dead letters", f"{dead:,}", "0", dead == 0),
        *(
            _flat(what, [seen[key] for seen in portions], third, unit=unit, factor=factor)
            for what, key, unit, factor in (
                ("ACK p50", "p50", "ms", 1e3),
                ("ACK p99", "p99", "ms", 1e3),
                ("ACK -> visible, p50", "visible", "ms", 1e3),
                ("PSS without PostgreSQL", "pss", "MB", 1e-6),
            )
        ),
    ]


async def _portion(
    bench: Bench, place: Place, service: WholeService, number: int
) -> dict[str, Any]:
    scale = bench.scale
    count = scale.steady_rate * scale.steady_portion_seconds
    told = {
        "mode": "open",
        "traffic": "mixed",
        "series": number,
        "count": count,
        "rate": scale.steady_rate,
        "wires": _WIRES,
    }
    seen: dict[str, Any] = await child("load", told={**told, "port": service.port})
    lags = sorted(lag for (lag,) in await place.rows(_LATELY))
    await until_empty(place)
    return seen | {"visible": percentile(lags, 0.5), "pss": service.pss_bytes()}


def _flat(what: str, values: list[float], third: int, *, unit: str, factor: float) -> Row:
    """Compare the last third of the time with the first."""
    first, last = (median(part) * factor for part in (values[:third], values[-third:]))
    measured = (
        f"{first:.1f} {unit} in the first third, {last:.1f} {unit} in the last; at most"
        f" {max(values) * factor:.1f} {unit}"
    )
    return Row(f"... {what}", measured, f"last <= {_GROWTH} x first", last <= _GROWTH * first)
