"""Costs of an event, everything on: processor of worker, sealer and server, and write-ahead log;
with one worker and more.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Final, NamedTuple

from tests.acceptance.processes import until_false
from tests.bench.bench import Bench
from tests.bench.drain import cpu_seconds, until_empty
from tests.bench.inbox import waiting
from tests.bench.processor import server_cpu_seconds
from tests.bench.report import Row, rate
from tests.bench.traffic import SCANS, alerts, growing, histories

WORKERS: Final = (1, 2, 4)
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class Cost(NamedTuple):
    """Costs of one drain.

    Microseconds of processor and bytes of the write-ahead log are those of one event.
    """

    worker: float
    sealer: float
    server: float
    wal: float
    events_per_second: float
    messages_per_second: float

    @property
    def cpu(self) -> float:
        """Processor time of all together."""
        return self.worker + self.sealer + self.server


class _Bars(NamedTuple):
    microseconds: float | None
    events_per_second: float | None
    messages_per_second: float | None


async def measure(bench: Bench) -> list[Row]:
    scale = bench.scale
    loads = {
        "UPS alerts, 1 scan": (
            "bench_alerts",
            partial(alerts, scale.alerts),
            _Bars(150, 10_000, None),
        ),
        f"FedEx histories, {SCANS} new scans": (
            "bench_histories",
            partial(histories, scale.histories),
            _Bars(85, 18_000, None),
        ),
        "FedEx histories, growing": (
            "bench_growing",
            partial(growing, scale.histories),
            _Bars(None, None, 5_000),
        ),
    }
    rows = []
    for name, (template, pushes, bars) in loads.items():
        await bench.server.filled(template, waiting(pushes))
        runs: dict[int, list[Cost]] = {workers: [] for workers in WORKERS}
        for turn in range(scale.runs):
            for workers in WORKERS:
                runs[workers].append(await drain_cost(bench, template, workers=workers))
                cost = runs[workers][-1]
                bench.say(
                    f"cost {turn + 1}, {name}, workers {workers}: {cost.cpu:.0f} us (worker"
                    f" {cost.worker:.0f}, server {cost.server:.0f}, sealer {cost.sealer:.0f}),"
                    f" {cost.wal:,.0f} bytes an event; {cost.messages_per_second:,.0f} messages/s"
                )
        rows += _rows(name, runs, bars)
    return rows


def _rows(name: str, runs: dict[int, list[Cost]], bars: _Bars) -> list[Row]:
    one, two = runs[1], runs[2]
    totals = [cost.cpu for cost in one]
    parts = ", ".join(
        f"{part} {median(getattr(cost, part) for cost in one):,.0f}"
        for part in ("worker", "server", "sealer")
    )
    rows = [
        Row(
            f"cost of an event, {name}",
            f"{rate(totals, ' us')}: {parts}",
            *_at_most(median(totals), bars.microseconds, "us"),
            median(totals),
        ),
        Row("... write-ahead log", rate([cost.wal for cost in one], " bytes")),
    ]
    for workers, costs in runs.items():
        events, messages = (
            [getattr(cost, field) for cost in costs]
            for field in ("events_per_second", "messages_per_second")
        )
        rows.append(
            Row(
                f"... workers: {workers}, with the sealer",
                f"{rate(events, ' events/s')}, {rate(messages, ' messages/s')}",
            )
        )
    for field, bar in (
        ("events_per_second", bars.events_per_second),
        ("messages_per_second", bars.messages_per_second),
    ):
        if bar is not None:
            best = max(median(getattr(cost, field) for cost in costs) for costs in (one, two))
            unit = field.partition("_")[0]
            rows.append(
                Row(
                    f"... two cores for all of it, {unit}",
                    f"{best:,.0f}/s",
                    f">= {bar:,.0f}/s",
                    best >= bar,
                )
            )
    return rows


def _at_most(value: float, bar: float | None, unit: str) -> tuple[str, bool | None]:
    return ("", None) if bar is None else (f"<= {bar:,.0f} {unit}", value <= bar)


async def drain_cost(
    bench: Bench,
    template: str,
    *,
    workers: int = 1,
    seals: bool = True,
    altered: tuple[str, ...] = (),
    settings: Mapping[str, str] = _NONE,
) -> Cost:
    """Drain a copy of `template` and, with `seals`, wait until all is sealed.

    `altered`: statements that change the copy before.
    """
    async with (
        bench.server.database(template) as place,
        bench.service(place, **settings) as service,
    ):
        if altered:
            await place.execute(*altered)
        roles = await service.start(*["worker"] * workers, *(["sealer"] if seals else []))
        data = Path(await place.value("SHOW data_directory"))
        messages = await place.value("SELECT count(*) FROM statesvc.inbox")
        known = await place.value("SELECT count(*) FROM statesvc.event")
        await place.execute("CHECKPOINT")

        def used(role: str) -> float:
            return sum(cpu_seconds(each.process.pid) for each in roles if each.role == role)

        async def written() -> float:
            return float(await place.value("SELECT pg_current_wal_insert_lsn() - '0/0'"))

        before = (used("worker"), used("sealer"), server_cpu_seconds(data), await written())
        seconds = await until_empty(place)
        if seals:
            await until_false(lambda: place.value("SELECT EXISTS (SELECT FROM statesvc.unsealed)"))
        after = (used("worker"), used("sealer"), server_cpu_seconds(data), await written())
        events = await place.value("SELECT count(*) FROM statesvc.event") - known
        worker, sealer, server, wal = (now - then for now, then in zip(after, before, strict=True))
        return Cost(
            worker=worker * 1e6 / events,
            sealer=sealer * 1e6 / events,
            server=server * 1e6 / events,
            wal=wal / events,
            events_per_second=events / seconds,
            messages_per_second=messages / seconds,
        )
