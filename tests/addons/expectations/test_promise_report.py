"""Promises of carriers, against a model; the late parcels page by page; files that a
spreadsheet reads.
"""

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta, timezone
from random import Random
from typing import Any

import pytest

from events.event import EventPlace, Reading
from events.vocabulary import Kind, Status
from statesvc.addons.expectations.promise_report import percentile
from tests.world.log_builder import MORNING, LogBuilder, scan

PATH = "/v1/reports/promises"
EVER = "since=2026-01-01"
ZONES = [timezone(timedelta(hours=hours)) for hours in (-8, -5, 0, 2, 9, 13)]
CARRIERS = ("ups", "fedex", "royalmail")
SERVICES = (None, "Ground", "GROUND ", "Express 2nd Day")
COUNTRIES = ("US", "CA", "DE", "GB")


@dataclass
class Promised:
    """A parcel, said scan by scan in any order."""

    number: str
    carrier_id: str
    scans: list[Reading] = field(default_factory=list)

    def outcome(self, now: datetime) -> tuple[str, int | None] | None:
        """Return the outcome by what was said, in the order of its times; None: nothing was
        promised, or it was cancelled.
        """
        ordered = sorted(self.scans, key=lambda each: each.time.instant)
        promises = [each.estimated_delivery for each in ordered if each.estimated_delivery]
        last = ordered[-1]
        if not promises or last.status is Status.CANCELLED:
            return None
        day = date.fromisoformat(promises[0])
        delivered = next(
            (each.time.instant for each in ordered if each.status is Status.DELIVERED), None
        )
        if delivered is not None:
            # in local days, which the report never counts in
            days = (delivered.date() - day).days
            return ("late" if days > 0 else "on_time"), days
        if last.status in {Status.LOST, Status.RETURNING}:
            return "not_delivered", None
        ends = datetime(day.year, day.month, day.day, tzinfo=last.time.instant.tzinfo) + timedelta(
            days=1
        )
        return ("overdue" if ends <= now else "open"), None

    @property
    def key(self) -> tuple[str, str | None, str, str]:
        ordered = sorted(self.scans, key=lambda each: each.time.instant)
        promised = next(each.estimated_delivery for each in ordered if each.estimated_delivery)
        services = [each.service.strip().lower() for each in ordered if each.service is not None]
        return (
            self.carrier_id,
            services[-1] if services else None,
            f"{ordered[0].place.country}-{ordered[-1].place.country}",
            f"{promised[:7]}-01",
        )


def parcels(chance: Random, count: int) -> Iterator[Promised]:
    for place in range(count):
        parcel = Promised(f"1Z{place:06}", chance.choice(CARRIERS))
        services = chance.choice(((None,), SERVICES))
        zone, at = chance.choice(ZONES), MORNING + timedelta(minutes=chance.randrange(60 * 24 * 60))
        end = chance.choice(
            [Status.DELIVERED] * 6
            + [Status.IN_TRANSIT, Status.RETURNING, Status.LOST, Status.CANCELLED]
        )
        way = [Status.INFO_RECEIVED, Status.PICKED_UP, Status.IN_TRANSIT, end]
        for step, status in enumerate([way[0], end] if end is Status.CANCELLED else way):
            at += timedelta(minutes=chance.randrange(1, 60 * 30))
            local = at.astimezone(zone)
            estimate = (
                f"{local + timedelta(days=chance.randrange(5)):%Y-%m-%d}"
                if chance.randrange(3)
                else None
            )
            said: dict[str, Any] = {
                "estimated_delivery": estimate,
                "service": chance.choice(services),
            }
            reading = scan(parcel.number, 0, status, native_id=f"{parcel.number}-{step}", **said)
            where = EventPlace(country=chance.choice(COUNTRIES))
            parcel.scans.append(
                replace(reading, time=replace(reading.time, instant=local), place=where)
            )
        chance.shuffle(parcel.scans)
        yield parcel


async def say_all(log: LogBuilder, said: list[Promised]) -> None:
    for carrier_id in CARRIERS:
        readings = [
            each for parcel in said if parcel.carrier_id == carrier_id for each in parcel.scans
        ]
        for start in range(0, len(readings), 200):
            await log.append(*readings[start : start + 200], carrier_id=carrier_id)


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.soak)])
async def test_the_report_is_what_a_model_makes_of_the_same_scans(api: Any, count: int) -> None:
    said = list(parcels(Random(18), count))
    await say_all(LogBuilder(api.connection, api.keyring), said)
    now = datetime.now(UTC)
    wanted: dict[tuple[str, str | None, str, str], Counter[str]] = defaultdict(Counter)
    delays: dict[tuple[str, str | None, str, str], Counter[str]] = defaultdict(Counter)
    late = set()
    for parcel in said:
        outcome = parcel.outcome(now)
        if outcome is None:
            continue
        wanted[parcel.key][outcome[0]] += 1
        if outcome[1] is not None:
            delays[parcel.key][str(outcome[1])] += 1
        if outcome[0] in {"late", "overdue", "not_delivered"}:
            late.add(parcel.number)
    groups = (await api.get(f"{PATH}?{EVER}")).body["groups"]
    found = {
        (
            each["carrier_id"],
            each["service"] and each["service"].lower(),
            each["lane"],
            each["month"],
        ): each
        for each in groups
    }
    assert found.keys() == wanted.keys()
    assert {
        key: {name: found[key][name] for name in counts} for key, counts in wanted.items()
    } == wanted
    assert {key: each["delay_days"] for key, each in found.items() if each["delay_days"]} == delays
    assert sum(each["promised"] for each in groups) == sum(
        counts.total() for counts in wanted.values()
    )
    (whole,) = (await api.get(f"{PATH}?{EVER}&by=carrier&carrier_id=ups")).body["groups"]
    ups = sum((counts for key, counts in wanted.items() if key[0] == "ups"), Counter[str]())
    assert (whole["on_time"], whole["late"], whole["lane"]) == (ups["on_time"], ups["late"], None)
    assert whole["on_time_share"] == round(
        ups["on_time"] / (ups["on_time"] + ups["late"] + ups["overdue"]), 4
    )
    (ground,) = (await api.get(f"{PATH}?{EVER}&by=service&service=ground")).body["groups"]
    of_ground = sum(
        (counts for key, counts in wanted.items() if key[1] == "ground"), Counter[str]()
    )
    assert (ground["service"].lower(), ground["on_time"], ground["lane"]) == (
        "ground",
        of_ground["on_time"],
        None,
    )
    listed = await every_page(api, f"{PATH}/late?{EVER}&limit=100")
    assert {each["tracking_number"] for each in listed} == late
    assert len(listed) == len(late)
    assert {each["service"] and each["service"].lower() for each in listed} == {
        None,
        "ground",
        "express 2nd day",
    }
    assert all(each["days_late"] > 0 for each in listed)


async def every_page(api: Any, path: str) -> list[Any]:
    found: list[Any] = []
    cursor = ""
    while True:
        page = (await api.get(path + cursor)).body
        found += page["items"]
        if page["next_cursor"] is None:
            return found
        cursor = f"&cursor={page['next_cursor']}"


async def _file(api: Any, query: str) -> tuple[str, bytes]:
    async with api.client.get(
        f"{PATH}/export?{EVER}&{query}",
        headers={"Authorization": f"Bearer {await api.key('read')}"},
    ) as response:
        assert response.status == 200
        return response.content_type, await response.read()


async def test_files_hold_the_same_and_no_spreadsheet_computes_a_number(api: Any) -> None:
    said = list(parcels(Random(3), 30))
    said.append(replace(said[0], number="=1+1"))
    said[-1].scans = [
        replace(each, tracking_number="=1+1", native_id=f"f-{place}")
        for place, each in enumerate(said[-1].scans)
    ]
    await say_all(LogBuilder(api.connection, api.keyring), said)
    groups = (await api.get(f"{PATH}?{EVER}")).body["groups"]
    media_type, content = await _file(api, "format=csv")
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    assert (media_type, [int(row["promised"]) for row in rows]) == (
        "text/csv",
        [each["promised"] for each in groups],
    )
    late = await every_page(api, f"{PATH}/late?{EVER}")
    _, content = await _file(api, "format=csv&table=late")
    assert len(list(csv.DictReader(io.StringIO(content.decode())))) == len(late)
    assert b"\n=" not in content
    assert b",=" not in content


async def test_what_is_corrected_or_cancelled_is_counted_as_it_is_now(api: Any) -> None:
    log = LogBuilder(api.connection, api.keyring)
    reading = scan("A1", 0, Status.IN_TRANSIT, native_id="a", estimated_delivery="2026-03-02")
    await log.append(reading, scan("A1", 60, Status.DELIVERED, native_id="b"))
    (group,) = (await api.get(f"{PATH}?{EVER}&by=carrier")).body["groups"]
    assert (group["on_time"], group["delay_days"], group["delay_days_p50"]) == (1, {"-1": 1}, -1)
    await log.append(scan("A1", 90, None, native_id="c", kind=Kind.CORRECTION, corrects="b"))
    (group,) = (await api.get(f"{PATH}?{EVER}&by=carrier")).body["groups"]
    assert (group["on_time"], group["overdue"], group["on_time_share"]) == (0, 1, 0.0)


async def test_what_is_refused(api: Any) -> None:
    assert (await api.get(f"{PATH}?carrier_id=nobody")).body["code"] == "unknown_carrier"
    for wrong in (
        "by=country",
        "lane=us",
        "since=soon",
        "until=0.5",
        "until=86400",
        "by=carrier,carrier,lane,month,month",
    ):
        assert (await api.get(f"{PATH}?{wrong}")).status == 422, wrong
    assert (await api.get(f"{PATH}/late?cursor=x")).body["code"] == "invalid_cursor"
    assert (await api.get(f"{PATH}/export?format=xls")).status == 422


@pytest.mark.parametrize(("percent", "wanted"), [(1, -2), (50, 0), (90, 3), (99, 9), (100, 9)])
def test_a_percentile_is_a_value_that_this_share_does_not_exceed(percent: int, wanted: int) -> None:
    assert percentile(Counter({-2: 10, 0: 50, 3: 35, 9: 5}), percent) == wanted
    assert percentile(Counter(), percent) is None
