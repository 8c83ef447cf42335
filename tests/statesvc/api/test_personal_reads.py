"""Reading is not writing: personal fields come on request, and the log says who read them without
growing with every call.
"""

import asyncio
import json
from typing import Any

import orjson
import pytest
from psycopg import AsyncConnection
from psycopg.errors import RaiseException

from events.vocabulary import Status
from statesvc.log.personal_read_entries import (
    CountedHour,
    PersonalRead,
    begin_personal_read,
    close_hours,
    count_further,
)
from statesvc.maintenance.upkeep import once
from tests.world.log_builder import LogBuilder

PERSONAL = {"include": "personal"}
HOUR = 3600.0


async def entries(api: Any, verb: str = "read_personal%") -> list[tuple[str, dict[str, Any]]]:
    query = (
        "SELECT verb, canonical FROM statesvc.action WHERE verb LIKE %s ORDER BY batch_id, ordinal"
    )
    rows = await api.rows(query, (verb,))
    return [(found, orjson.loads(canonical)) for found, canonical in rows]


async def signed(api: Any, scan: Any, number: str = "7") -> str:
    await api.carriers.push(
        scan(number, Status.DELIVERED, signed_by="J. Doe", description="at the door")
    )
    shipment_id: str = (await api.get(f"/v1/shipments/ups/{number}")).body["shipment_id"]
    return shipment_id


@pytest.mark.parametrize(
    ("call", "scopes"), [("", "read pii"), ("/history", "read pii"), ("/audit", "audit pii")]
)
async def test_a_key_that_may_reads_nothing_personal_and_writes_nothing_unless_it_asks(
    api: Any, scan: Any, call: str, scopes: str
) -> None:
    await signed(api, scan)
    reply = await api.get(f"/v1/shipments/ups/7{call}", scopes=scopes)
    assert "J. Doe" not in json.dumps(reply.body)
    assert await entries(api) == []
    reply = await api.get(f"/v1/shipments/ups/7{call}", scopes=scopes, params=PERSONAL)
    assert "J. Doe" in json.dumps(reply.body)
    assert [verb for verb, _ in await entries(api)] == ["read_personal"]


async def test_asking_without_the_scope_is_refused_with_what_to_do(api: Any, scan: Any) -> None:
    await signed(api, scan)
    for call, scope in (
        ("", "read"),
        ("/history", "read"),
        ("/audit", "audit"),
        ("/evidence", "audit"),
    ):
        reply = await api.get(f"/v1/shipments/ups/7{call}", scopes=scope, params=PERSONAL)
        assert (reply.status, reply.body["code"], reply.body["required_scope"]) == (
            403,
            "missing_scope",
            "pii",
        ), call
        assert "leave `include=personal` out" in reply.body["detail"], call
        assert (
            await api.get(
                f"/v1/shipments/ups/7{call}", scopes=f"{scope} pii", params={"include": "all"}
            )
        ).status == 422, call


@pytest.mark.slow
async def test_three_hundred_readings_are_two_entries_and_evidence_does_not_print_them(
    api: Any, scan: Any, database: Any
) -> None:
    shipment_id = await signed(api, scan)
    for _ in range(300):
        assert (await api.get("/v1/shipments/ups/7", scopes="read pii", params=PERSONAL)).body[
            "signed_by"
        ] == "J. Doe"
    await api.readings.keep_up()
    await database.clock.advance(HOUR + 120)
    assert await close_hours(api.connection) == 1
    assert await close_hours(api.connection) == 0
    (first, said), (again, counted) = await entries(api)
    assert (first, said["target"], said["details"]["call"]) == (
        "read_personal",
        f"shipment {shipment_id}",
        "state",
    )
    assert (again, counted["target"], counted["details"]["further"]) == (
        "read_personal_again",
        f"shipment {shipment_id}",
        299,
    )
    assert await api.rows("SELECT FROM statesvc.personal_reading") == []
    await LogBuilder(api.connection, api.keyring).seal()
    evidence = (await api.get("/v1/shipments/ups/7/evidence", scopes="audit pii")).body
    assert "action" not in [entry["kind"] for entry in evidence["entries"]]
    readings = (await api.get("/v1/shipments/ups/7/audit", scopes="audit")).body["readings"]
    assert [(one["call"], one["further"], one["log_index"] is None) for one in readings] == [
        ("state", None, False),
        (None, 299, False),
        ("evidence", None, True),
    ]


async def test_each_key_each_shipment_and_each_hour_has_a_first_reading(
    api: Any, scan: Any, database: Any
) -> None:
    await signed(api, scan)
    await signed(api, scan, "8")
    for number in ("7", "8", "7"):
        await api.get(f"/v1/shipments/ups/{number}", scopes="read pii", params=PERSONAL)
        await api.get(
            f"/v1/shipments/ups/{number}/history", scopes="audit read pii", params=PERSONAL
        )
    assert len(await entries(api)) == 4
    await database.clock.advance(HOUR)
    await api.get("/v1/shipments/ups/7", scopes="read pii", params=PERSONAL)
    assert len(await entries(api)) == 5


async def test_processes_that_read_at_once_record_one_first_and_each_answers_after_it(
    database: Any,
) -> None:
    reading = PersonalRead(actor="key:a", target="shipment x", details={"call": "state"})

    async def read() -> tuple[bool, int]:
        async with await AsyncConnection.connect(
            database.service_dsn, autocommit=True
        ) as connection:
            begun = await begin_personal_read(connection, reading)
            seen = await (
                await connection.execute(
                    "SELECT count(*) FROM statesvc.action WHERE verb = 'read_personal'"
                )
            ).fetchone()
            assert seen is not None
            return begun.is_first, seen[0]

    answers = await asyncio.gather(*(read() for _ in range(8)))
    assert sorted(answers) == [(False, 1)] * 7 + [(True, 1)]


async def test_a_first_reading_that_fails_leaves_the_next_one_to_be_the_first(
    api: Any, owner: AsyncConnection[Any]
) -> None:
    reading = PersonalRead(actor="key:a", target="shipment x", details={"call": "state"})
    await owner.execute(
        "CREATE FUNCTION statesvc.test_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE EXCEPTION 'refused'; END $$;CREATE TRIGGER test_refuse BEFORE INSERT ON"
        " statesvc.action FOR EACH ROW EXECUTE FUNCTION statesvc.test_refuse()"
    )
    with pytest.raises(RaiseException):
        await begin_personal_read(api.connection, reading)
    await owner.execute("DROP FUNCTION statesvc.test_refuse CASCADE")
    assert (await begin_personal_read(api.connection, reading)).is_first
    assert len(await entries(api)) == 1


async def test_counts_of_several_processes_add_up_and_a_late_one_is_not_lost(
    api: Any, database: Any
) -> None:
    reading = PersonalRead(actor="key:a", target="shipment x", details={"call": "state"})
    hour = (await begin_personal_read(api.connection, reading)).counted.hour
    counted = CountedHour("key:a", "shipment x", hour)
    for number in (3, 4):
        await count_further(api.connection, {counted: number})
    await database.clock.advance(HOUR + 120)
    await once(api.connection)
    await count_further(api.connection, {counted: 5})
    await once(api.connection)
    assert [
        said["details"]["further"] for _, said in await entries(api, "read_personal_again")
    ] == [7, 5]


async def test_an_hour_that_was_read_once_has_no_second_entry(
    api: Any, scan: Any, database: Any
) -> None:
    await signed(api, scan)
    await api.get("/v1/shipments/ups/7", scopes="read pii", params=PERSONAL)
    await api.readings.close()
    await database.clock.advance(HOUR + 120)
    assert await close_hours(api.connection) == 0
    assert len(await entries(api)) == 1


async def test_what_was_not_sent_is_not_recorded(api: Any, scan: Any) -> None:
    await signed(api, scan)
    first = await api.get("/v1/shipments/ups/7", scopes="read pii", params=PERSONAL)
    known = {"If-None-Match": first.headers["ETag"]}
    assert (
        await api.get("/v1/shipments/ups/7", scopes="read pii", params=PERSONAL, headers=known)
    ).status == 304
    await api.readings.keep_up()
    assert (await api.rows("SELECT further FROM statesvc.personal_reading")) == [(0,)]
