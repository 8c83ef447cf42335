"""Answers as of then: the same for ever at every sealing instant and just before it."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

from events.identity.ids import identify
from events.spelling import normalize_number
from events.vocabulary import Kind, Status, TzSource
from projections.fact import Fact
from projections.fold import fold
from projections.state import ShipmentState
from statesvc.shipments.as_of import find_shipment_at, horizon_at
from statesvc.shipments.find import FoundShipment
from tests.projections.stated_fact import fact_of
from tests.world.log_builder import LogBuilder, scan

ROUNDS = 12
JUST_BEFORE = timedelta(microseconds=1)
STATUSES = [status for status in Status if status is not Status.UNKNOWN]
Model = dict[str, list[tuple[datetime, list[Fact]]]]
"""Facts of each number: when what was sealed, in the order of the rounds."""


async def _lives(log: LogBuilder, chance: Random, histories: int) -> Model:
    """Push late, timeless, corrected and retracted scans of many parcels, sealed now and then."""
    model: Model = defaultdict(list)
    said: dict[str, list[Fact]] = defaultdict(list)
    event_ids: dict[str, list[str]] = defaultdict(list)
    numbers = [f"1Z{place:05}" for place in range(histories)]
    for turn in range(ROUNDS):
        told = chance.sample(numbers, k=histories // 4) if turn else numbers
        for start in range(0, len(told), 50):
            readings = []
            for number in told[start : start + 50]:
                native_id = f"{number}-{turn}"
                shape = chance.choice(["scan", "scan", "late", "retract", "reread"])
                if shape in {"scan", "late"} or not event_ids[number]:
                    minute = (
                        chance.randrange(60)
                        if shape == "late"
                        else 60 * turn + chance.randrange(60)
                    )
                    reading = scan(number, minute, chance.choice(STATUSES), native_id=native_id)
                    if chance.randrange(4) == 0:
                        reading = replace(
                            reading,
                            time=replace(reading.time, tz_source=TzSource.RECEIVED, identity=""),
                        )
                else:
                    corrected = chance.choice(event_ids[number])
                    status = chance.choice(STATUSES) if shape == "reread" else None
                    reading = scan(
                        number,
                        60 * turn,
                        status,
                        native_id=native_id,
                        kind=Kind.CORRECTION,
                        corrects=corrected,
                    )
                event_ids[number].append(native_id)
                event = identify(
                    reading, carrier_id="ups", digest=log.keyring.carrier_digest("ups")
                )
                said[number].append(fact_of(event, signer_digest=None))
                readings.append(reading)
            await log.append(*readings)
        head = await log.seal()
        for number in told:
            model[number].append((head.created_at, list(said[number])))
    return model


async def _at(log: LogBuilder, number: str, instant: datetime) -> tuple[Status, int] | None:
    horizon = await horizon_at(log.connection, instant)
    assert not horizon.clamped
    found = await find_shipment_at(
        log.connection, horizon, carrier_id="ups", number=normalize_number(number)
    )
    return (
        (Status(found.shipment.status), found.shipment.version)
        if isinstance(found, FoundShipment)
        else None
    )


def _known(facts: list[Fact]) -> tuple[Status, int]:
    state: ShipmentState = fold(facts)
    return state.status, len(facts)


@pytest.mark.slow
@pytest.mark.parametrize("histories", [100, pytest.param(1_000, marks=pytest.mark.soak)])
async def test_at_each_sealing_instant_and_just_before_it_the_answer_is_the_models(
    event_log: LogBuilder, histories: int
) -> None:
    model = await _lives(event_log, Random(7), histories)
    moves = 0
    for number, rounds in model.items():
        before = None
        for instant, facts in rounds:
            assert await _at(event_log, number, instant - JUST_BEFORE) == before
            known = _known(facts)
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
    answer = await _clamped(event_log, recorded)
    await event_log.seal()
    assert await _at(event_log, "1ZA", first) == (Status.PICKED_UP, 1)
    assert answer == (Status.PICKED_UP, 1)
    assert await _at(event_log, "1ZA", recorded) == answer


async def _clamped(log: LogBuilder, instant: datetime) -> tuple[Status, int]:
    horizon = await horizon_at(log.connection, instant)
    assert horizon.clamped
    assert horizon.at < instant
    found = await find_shipment_at(log.connection, horizon, carrier_id="ups", number="1ZA")
    assert isinstance(found, FoundShipment)
    return Status(found.shipment.status), found.shipment.version


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
