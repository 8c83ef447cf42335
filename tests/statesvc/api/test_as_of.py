"""Answers as of then: the same for ever at every sealing instant and just before it."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

from events.spelling import normalize_number
from events.vocabulary import Kind, Status, TzSource
from statesvc.shipments.as_of import find_shipment_at, horizon_at
from statesvc.shipments.find import FoundShipment
from tests.world.log_builder import LogBuilder, scan

ROUNDS = 12
JUST_BEFORE = timedelta(microseconds=1)
STATUSES = [status for status in Status if status is not Status.UNKNOWN]
Model = dict[str, list[tuple[datetime, tuple[Status, int]]]]
"""Status and version of each number at the sealing instants of its news, as they were live."""


async def _lives(log: LogBuilder, chance: Random, histories: int) -> Model:
    """Push late, timeless, corrected and retracted scans of many parcels, sealed now and then."""
    model: Model = defaultdict(list)
    event_ids: dict[str, list[str]] = defaultdict(list)
    numbers = [f"1Z{place:05}" for place in range(histories)]
    for turn in range(ROUNDS):
        told = chance.sample(numbers, k=histories // 4) if turn else numbers
        for some in batched(told, 50):
            readings = []
            for number in some:
                native_id = f"{number}-{turn}"
                shape = chance.choice(["scan", "scan", "late", "retract", "reread"])
                if shape in {"scan", "late"} or not event_ids[number]:
                    minute = chance.randrange(60) + (0 if shape == "late" else 60 * turn)
                    reading = scan(number, minute, chance.choice(STATUSES), native_id=native_id)
                    if chance.randrange(4) == 0:
                        timeless = replace(reading.time, tz_source=TzSource.RECEIVED, identity="")
                        reading = replace(reading, time=timeless)
                else:
                    reading = scan(
                        number,
                        60 * turn,
                        chance.choice(STATUSES) if shape == "reread" else None,
                        native_id=native_id,
                        kind=Kind.CORRECTION,
                        corrects=chance.choice(event_ids[number]),
                    )
                event_ids[number].append(native_id)
                readings.append(reading)
            await log.append(*readings)
        head = await log.seal()
        live = await log.rows("SELECT number, status, version FROM statesvc.shipment")
        for number, status, version in live:
            if number in told:
                model[number].append((head.created_at, (Status(status), version)))
    return model


def batched(members: list[str], size: int) -> Iterator[list[str]]:
    return (members[start : start + size] for start in range(0, len(members), size))


async def _at(
    log: LogBuilder, number: str, instant: datetime, *, clamped: bool = False
) -> tuple[Status, int] | None:
    horizon = await horizon_at(log.connection, instant)
    assert (horizon.clamped, horizon.at < instant) == (clamped, clamped)
    found = await find_shipment_at(
        log.connection, horizon, carrier_id="ups", number=normalize_number(number)
    )
    return (
        (Status(found.shipment.status), found.shipment.version)
        if isinstance(found, FoundShipment)
        else None
    )


@pytest.mark.slow
@pytest.mark.parametrize("histories", [100, pytest.param(1_000, marks=pytest.mark.soak)])
async def test_at_each_sealing_instant_and_just_before_it_the_answer_is_what_was_live_then(
    event_log: LogBuilder, histories: int
) -> None:
    model = await _lives(event_log, Random(7), histories)
    moves = 0
    for number, rounds in model.items():
        before = None
        for instant, known in rounds:
            assert await _at(event_log, number, instant - JUST_BEFORE) == before
            assert await _at(event_log, number, instant) == known
            moves += before is not None and before[0] is not known[0]
            before = known
    assert moves > histories, "the histories are worth checking"


async def test_what_was_recorded_by_then_but_sealed_later_changes_no_answer(
    event_log: LogBuilder,
) -> None:
    # an entry may be recorded before an instant and be sealed after it: by the recorded time the
    # answer would change later
    await event_log.append(scan("1ZA", 1, Status.PICKED_UP))
    first = (await event_log.seal()).created_at
    await event_log.append(scan("1ZA", 2, Status.DELIVERED))
    (recorded,) = (await event_log.rows("SELECT max(recorded_at) FROM statesvc.event"))[0]
    assert first < recorded
    answer = await _at(event_log, "1ZA", recorded, clamped=True)
    await event_log.seal()
    assert await _at(event_log, "1ZA", first) == (Status.PICKED_UP, 1)
    assert answer == (Status.PICKED_UP, 1)
    assert await _at(event_log, "1ZA", recorded) == answer


async def test_the_calls_answer_as_of(api: Any, scan: Callable[..., Any]) -> None:
    log = LogBuilder(api.connection, api.keyring)
    await api.carriers.push(scan("5", Status.PICKED_UP), scan("5", Status.IN_TRANSIT, minutes=5))
    first = (await log.seal()).created_at
    await api.carriers.push(scan("5", Status.DELIVERED, minutes=3, signed_by="J. Doe"))
    await log.seal()
    asked = {"as_of": first.isoformat()}
    then = await api.get("/v1/shipments/ups/5", params=asked)
    assert (then.body["status"], then.body["version"], then.body["as_of_clamped"]) == (
        "in_transit",
        2,
        False,
    )
    assert (await api.get("/v1/shipments/ups/5")).body["version"] == 3
    page = (await api.get("/v1/shipments/ups/5/history", params={**asked, "limit": 1})).body
    rest = (
        await api.get(
            "/v1/shipments/ups/5/history",
            params={**asked, "limit": 1, "cursor": page["next_cursor"]},
        )
    ).body
    assert [event["version"] for event in page["items"] + rest["items"]] == [1, 2]
    assert (rest["next_cursor"], rest["as_of_log_index"]) == (None, then.body["as_of_log_index"])
    audit = (await api.get("/v1/shipments/ups/5/audit", scopes="audit", params=asked)).body
    assert [entry["sequence"] for entry in audit["transitions"]] == [2]
    assert (
        max(entry["log_index"] for entry in audit["events"] + audit["transitions"])
        <= then.body["as_of_log_index"]
    )
    future = (await api.get("/v1/shipments/ups/5", params={"as_of": "2099-01-01T00:00:00Z"})).body
    assert (future["as_of_clamped"], future["version"]) == (True, 3)
    earlier = await api.get("/v1/shipments/ups/5", params={"as_of": "2020-01-01T00:00:00Z"})
    assert (earlier.status, earlier.body["code"]) == (404, "not_found")
