"""A message over HTTP, wherever its body is; and the places that the audit tells."""

import base64
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.world.body_archiver import KEEP_MONTHS, Archiver
from tests.world.worker_harness import CARRIER_ID, push_body, shipment

BODY = push_body({"number": "A1", "status": "in_transit", "city": "Straße"})
BINARY = b"unreadable \xff\x00"


async def show(api: Any, message_id: UUID, *, scopes: str = "audit pii", status: int = 200) -> Any:
    asked = {"include": "personal"} if "pii" in scopes else {}
    reply = await api.get(f"/v1/messages/{message_id}", scopes=scopes, params=asked)
    assert reply.status == status, reply.body
    if status == 200:
        assert reply.headers["Cache-Control"] == "no-store"
    return reply.body


async def readings(archiver: Archiver) -> list[str]:
    found = await archiver.harness.rows(
        "SELECT target FROM statesvc.action WHERE verb = 'read_personal' ORDER BY batch_id"
    )
    return [target for (target,) in found]


async def test_a_body_is_the_same_byte_for_byte_hot_and_archived(
    api: Any, archiver: Archiver
) -> None:
    message_id, unreadable = await archiver.harness.push(BODY, BINARY)
    await archiver.harness.work()
    for place in ("hot", "archived"):
        shown = await show(api, message_id)
        assert (shown["state"], shown["outcome"], shown["body_place"]) == (
            "settled",
            "applied",
            place,
        )
        assert shown["shipments"] == [str(shipment("A1"))]
        assert base64.b64decode(shown["body_base64"]) == BODY
        assert (shown["body_text"], shown["body_bytes"]) == (BODY.decode(), len(BODY))
        # an open dead letter keeps its body in the database
        letter = await show(api, unreadable)
        assert (letter["state"], letter["body_place"], letter["body_text"]) == (
            "dead_letter",
            "hot",
            None,
        )
        assert base64.b64decode(letter["body_base64"]) == BINARY
        if place == "hot":
            await archiver.archived()


async def test_without_scope_pii_the_body_stays_closed_and_with_it_the_first_reading_is_recorded(
    api: Any, archiver: Archiver
) -> None:
    (message_id,) = await archiver.harness.push(BODY)
    assert (await show(api, message_id, scopes="read pii", status=403))["required_scope"] == "audit"
    shown = await show(api, message_id, scopes="audit")
    assert (shown["state"], shown["body_place"]) == ("waiting", "hot")
    assert not {"body_base64", "body_text", "body_bytes"} & set(shown)
    assert await readings(archiver) == []
    await show(api, message_id)
    await show(api, message_id)
    assert await readings(archiver) == [f"message {message_id}"]
    assert (
        "body_base64" not in (await api.get(f"/v1/messages/{message_id}", scopes="audit pii")).body
    ), "nobody asked for it"
    assert (await show(api, uuid4(), status=404))["code"] == "not_found"


@pytest.mark.slow
async def test_erased_and_expired_bodies_are_told_apart(api: Any, archiver: Archiver) -> None:
    erased = await archiver.harness.ingest({"number": "A1", "status": "in_transit"})
    expired = await archiver.harness.ingest({"number": "A2", "status": "in_transit"})
    await archiver.archived()
    await archiver.erase(shipment("A1"))
    shown = await show(api, erased)
    assert (shown["body_place"], shown["body_base64"]) == ("erased", None)
    await archiver.days_pass(31 * KEEP_MONTHS)
    await archiver.run_pass()
    for message_id, place in ((erased, "erased"), (expired, "expired")):
        shown = await show(api, message_id)
        assert (shown["body_place"], shown["body_base64"], shown["headers"]) == (place, None, None)
    assert await readings(archiver) == []


@pytest.mark.parametrize("fault", ["missing", "altered"])
async def test_an_archive_that_cannot_be_read_is_said_and_not_passed_off_as_empty(
    api: Any, archiver: Archiver, fault: str
) -> None:
    message_id = await archiver.harness.ingest({"number": "A1", "status": "in_transit"})
    day = await archiver.archived()
    path = archiver.folder / str((await archiver.ledger())[day].file_name)
    if fault == "missing":
        path.unlink()
    else:
        data = bytearray(path.read_bytes())
        data[100] ^= 1
        path.write_bytes(bytes(data))
    assert (await show(api, message_id, status=503))["code"] == "body_unavailable"
    shown = await show(api, message_id, scopes="audit")
    assert (shown["body_place"], shown["headers"]) == ("archived", None)


async def test_the_audit_says_where_the_body_of_each_message_is(
    api: Any, archiver: Archiver
) -> None:
    await archiver.harness.ingest({"number": "A1", "status": "picked_up"})
    await archiver.archived()
    await archiver.harness.ingest(
        {"number": "A1", "status": "in_transit", "native_id": "n1", "code": "AR"}
    )
    await archiver.harness.ingest(
        {"number": "A1", "status": "delivered", "native_id": "n1", "code": "DL"}
    )
    path = f"/v1/shipments/{CARRIER_ID}/A1/audit"
    shown = (await api.get(path, scopes="audit")).body
    assert [event["body_place"] for event in shown["events"]] == ["archived", "hot"]
    assert [conflict["body_place"] for conflict in shown["conflicts"]] == ["hot"]
    await archiver.erase(shipment("A1"))
    shown = (await api.get(path, scopes="audit")).body
    assert {event["body_place"] for event in shown["events"]} == {"erased"}
