"""Traces that the worker leaves behind can be recomputed, and tell nobody's name."""

import io
import json
from uuid import UUID

import pytest

from events.crypto.keyring import body_context, body_key_wrap, part_context
from events.crypto.sealing import SealError, SealingKey, commitment, unsalted
from tests.statesvc.worker.log_check import check_log
from tests.world.worker_harness import WorkerHarness, push_body, shipment

SIGNER, TEXT, ADDRESS = (
    "Zaphod Beeblebrox",
    "Left with the neighbour Trillian",
    "42 Heart of Gold Lane",
)
DELIVERED = {
    "number": "A1",
    "status": "delivered",
    "code": "DL",
    "signed_by": SIGNER,
    "description": TEXT,
    "delivery_address": ADDRESS,
}


async def test_the_whole_log_is_recomputed_from_its_canonical_bytes(harness: WorkerHarness) -> None:
    scans = [
        {
            "number": f"N{n % 3}",
            "status": "in_transit",
            "minute": n,
            "code": f"S{n}",
            "native_id": f"n{n}",
        }
        for n in range(12)
    ]
    for body in (
        push_body(*scans[:5]),
        push_body(*scans[3:9]),
        push_body({**scans[2], "code": "other"}, {**scans[0], "signed_by": SIGNER}),
    ):
        await harness.push(body)
    await harness.work()
    await harness.ingest(*scans, {"number": "N1", "kind": "unmapped", "code": "?"})
    await harness.ingest({**scans[1], "code": "more"}, DELIVERED)
    assert await check_log(harness.connection, harness.keyring) > 15
    assert {kind for (kind,) in await harness.rows("SELECT DISTINCT kind FROM statesvc.event")} == {
        "scan",
        "info",
        "unmapped",
    }


async def test_recorded_at_grows_even_where_the_clock_stands_still(harness: WorkerHarness) -> None:
    await harness.as_owner(
        "CREATE OR REPLACE FUNCTION statesvc.clock() RETURNS timestamptz LANGUAGE sql RETURN"
        " date_trunc('hour', now())"
    )
    await harness.push(push_body({"number": "A1", "status": "picked_up"}))
    await harness.work()
    await harness.ingest(
        *({"number": "A1", "status": "in_transit", "minute": n} for n in range(1, 5))
    )
    assert await check_log(harness.connection, harness.keyring) == 7


async def _unwrapped(harness: WorkerHarness, message_id: UUID) -> bytes:
    """Return the body, through the keys of the shipments that its message names."""
    ((shipments, sealed_key),) = await harness.rows(
        "SELECT shipments, sealed_key FROM statesvc.message WHERE message_id = %s", message_id
    )
    key = body_key_wrap(await _keys(harness, shipments), message_id).unwrap(
        sealed_key, body_context(message_id)
    )
    ((sealed_body, committed),) = await harness.rows(
        "SELECT sealed, commitment FROM statesvc.body WHERE message_id = %s", message_id
    )
    content = key.open(sealed_body, body_context(message_id))
    assert commitment(content) == committed
    return unsalted(content)


async def _keys(harness: WorkerHarness, shipments: list[UUID]) -> dict[UUID, SealingKey]:
    return {
        shipment_id: harness.keyring.open_shipment_key(
            await harness.value(
                "SELECT sealed_key FROM statesvc.stream WHERE shipment_id = %s", shipment_id
            ),
            shipment_id,
        )
        for shipment_id in shipments
    }


@pytest.mark.parametrize("numbers", [("A1",), ("A1", "B1", "C1")])
async def test_the_body_opens_with_the_keys_of_all_its_shipments_and_with_nothing_less(
    harness: WorkerHarness, numbers: tuple[str, ...]
) -> None:
    body = push_body(*({"number": number, "status": "in_transit"} for number in numbers))
    (message_id,) = await harness.push(body)
    await harness.work()
    assert await _unwrapped(harness, message_id) == body
    again = push_body(
        *({"number": number, "status": "in_transit"} for number in numbers), envelope=1
    )
    (repeated,) = await harness.push(again)
    await harness.work()
    assert await _unwrapped(harness, repeated) == again

    ((shipments, sealed_key),) = await harness.rows(
        "SELECT shipments, sealed_key FROM statesvc.message WHERE message_id = %s", message_id
    )
    assert shipments == sorted(map(shipment, numbers))
    with pytest.raises(SealError):
        harness.keyring.inbox.open(sealed_key, body_context(message_id))
    keys = await _keys(harness, shipments)
    for shipment_id, key in keys.items():
        others = {other: keys[other] for other in keys if other != shipment_id}
        for less in (
            key,
            body_key_wrap(others, message_id),
            body_key_wrap({shipment_id: key, UUID(int=0): key}, message_id),
        ):
            with pytest.raises(SealError):
                less.unwrap(sealed_key, body_context(message_id))


async def test_a_message_about_no_shipment_keeps_its_key_under_the_inbox_key(
    harness: WorkerHarness,
) -> None:
    message_id = await harness.ingest()
    sealed_key = await harness.value("SELECT sealed_key FROM statesvc.message")
    assert harness.keyring.inbox.unwrap(sealed_key, body_context(message_id))


async def test_the_personal_part_opens_with_the_shipments_key(harness: WorkerHarness) -> None:
    await harness.ingest(DELIVERED)
    ((event_id, sealed_part),) = await harness.rows(
        "SELECT event_id, sealed_part FROM statesvc.event"
    )
    key = harness.keyring.open_shipment_key(
        await harness.value("SELECT sealed_key FROM statesvc.stream"), shipment("A1")
    )
    part = json.loads(unsalted(key.open(sealed_part, part_context(shipment("A1"), event_id))))
    assert part == {"description": TEXT, "signed_by": SIGNER, "delivery_address": ADDRESS}


async def _tables_that_tell(harness: WorkerHarness, *secrets: str) -> set[str]:
    tables = await harness.rows(
        "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = 'statesvc' AND c.relkind = 'r' AND has_table_privilege(c.oid, 'SELECT')"
    )
    tables += [
        (f"statesvc.{name}",)
        for name in (
            "event",
            "conflict",
            "transition",
            "batch",
            "body",
            "message",
            "attempt",
            "action",
        )
    ]
    spelled = [
        *secrets,
        *(secret.upper() for secret in secrets),
        *(secret.encode().hex() for secret in secrets),
    ]
    asked = "SELECT EXISTS (SELECT FROM {} t WHERE t::text LIKE ANY (%s))"
    return {
        table
        for (table,) in tables
        if await harness.value(asked.format(table), [f"%{text}%" for text in spelled])
    }


async def test_no_table_and_no_log_line_holds_a_name_a_text_or_an_address_in_clear(
    harness: WorkerHarness, log: io.StringIO
) -> None:
    await harness.push(
        push_body(DELIVERED), b"unreadable " + SIGNER.encode(), b"defect " + TEXT.encode()
    )
    assert await _tables_that_tell(harness, SIGNER, TEXT, ADDRESS) == set()
    await harness.work()
    await harness.ingest(
        {**DELIVERED, "number": "B1", "code": None, "kind": "unmapped", "status": None}
    )
    await harness.ingest(
        {**DELIVERED, "number": "C1", "native_id": "n1"},
        {**DELIVERED, "number": "C1", "native_id": "n1", "code": "DX"},
    )
    await harness.ingest({**DELIVERED, "number": "D1", "signed_by": None}, rejected=1)
    await harness.ingest({**DELIVERED, "number": "D1"})
    assert await harness.value("SELECT count(*) FROM statesvc.conflict") == 1
    assert await _tables_that_tell(harness, SIGNER, TEXT, ADDRESS) == set()
    assert await _tables_that_tell(harness, "unreadable"), "the look finds what is there"
    assert not any(secret in log.getvalue() for secret in (SIGNER, TEXT, ADDRESS))
