"""Messages that a worker in another language handed over, or declined, in a Python worker."""

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from events.crypto.keyring import body_context
from events.crypto.sealing import SealingKey, unsalted
from events.event import Normalized
from events.normalized import dump
from statesvc.queue.claim import Message
from tests.world.worker_harness import WorkerHarness, normalize, push_body

PICKED_UP = {"number": "A1", "status": "picked_up", "minute": 0, "code": "PU"}
DELIVERED = {
    "number": "A1",
    "status": "delivered",
    "minute": 180,
    "code": "DL",
    "signed_by": "EVANS",
    "native_id": "n1",
}
Seal = Callable[[SealingKey, bytes, bytes], bytes]


class Foreign:
    """A worker in another language, told what to say; it has the inbox key alone."""

    def __init__(self, harness: WorkerHarness) -> None:
        self._shop = harness
        self._inbox = harness.keyring.inbox

    async def claim(
        self, lease: timedelta = timedelta(seconds=30)
    ) -> list[tuple[UUID, UUID, bytes, bytes]]:
        query = (
            "SELECT message_id, token, sealed_key, sealed FROM statesvc.claim('foreign', 64, %s)"
        )
        return await self._shop.rows(query, lease)

    async def read(
        self,
        *,
        by: str = "acme@node-1",
        document: bytes | None = None,
        seal: Seal = SealingKey.seal,
    ) -> int:
        """Claim what is raw and hand over what the normalizer says of it, or `document`."""
        taken = 0
        for message_id, token, sealed_key, sealed in await self.claim():
            context = body_context(message_id)
            key = self._inbox.unwrap(sealed_key, context)
            said = (
                dump(normalize(unsalted(key.open(sealed, context)), datetime.now(UTC)))
                if document is None
                else document
            )
            events = base64.b64encode(seal(key, said, context)).decode()
            result = {"message_id": str(message_id), "normalizer": by, "events": events}
            taken += await self._shop.value(
                "SELECT statesvc.settle(%s, %s::jsonb)", token, json.dumps([result])
            )
        return taken


@pytest.fixture
def foreign(harness: WorkerHarness) -> Foreign:
    return Foreign(harness)


async def test_what_was_handed_over_is_what_our_own_normalizer_reads_from_the_next_push(
    harness: WorkerHarness, foreign: Foreign
) -> None:
    (message_id,) = await harness.push(push_body(PICKED_UP, DELIVERED))
    assert await foreign.read() == 1
    await harness.work()
    assert await harness.rows(
        "SELECT message_id, outcome, events, normalizer FROM statesvc.message"
    ) == [(message_id, "applied", 2, "acme@node-1")]
    readers = {
        (event["normalizer"], event["normalizer_version"]) for event in await harness.events("A1")
    }
    assert readers == {("acme", "node-1")}
    await harness.ingest(PICKED_UP, DELIVERED, envelope=1)
    assert await harness.verdicts() == {"appended": 2, "duplicate": 2}
    await harness.push(push_body(PICKED_UP, DELIVERED, envelope=2))
    await foreign.read()
    await harness.work()
    assert await harness.verdicts() == {"appended": 2, "duplicate": 4}


async def test_rejections_and_empty_messages_count_as_if_we_had_read_them(
    harness: WorkerHarness, foreign: Foreign
) -> None:
    rejected, empty = await harness.push(push_body(DELIVERED, rejected=1), push_body())
    await foreign.read()
    await harness.work()
    assert dict(await harness.rows("SELECT message_id, outcome FROM statesvc.message")) == {
        rejected: "applied",
        empty: "empty",
    }
    assert await harness.rows("SELECT cause, message_id, detail FROM statesvc.dead_letter") == [
        ("rejected_member", rejected, "/events/0: no code and no time")
    ]


def _other_key(_key: SealingKey, said: bytes, context: bytes) -> bytes:
    return SealingKey.fresh().seal(said, context)


def _other_message(key: SealingKey, said: bytes, _context: bytes) -> bytes:
    return key.seal(said, b"another message")


@pytest.mark.parametrize(
    ("handed_over", "detail"),
    [
        ({"by": "acme"}, "is not called `name@version`"),
        ({"seal": _other_key}, "does not open"),
        ({"seal": _other_message}, "does not open"),
        ({"seal": lambda *_: b"\x01"}, "does not open"),
        ({"document": b"not JSON"}, "the hand-over is refused: not JSON at character 0"),
        (
            {"document": b'{"format": 1, "readings": [{}]}'},
            "the hand-over is refused: /readings/0/kind: Field required",
        ),
        (
            {"document": b'{"format": 1, "readings": [], "more": 1}'},
            "the hand-over is refused: the document: Extra inputs",
        ),
    ],
)
async def test_a_bad_hand_over_waits_for_a_human_and_the_others_take_effect(
    harness: WorkerHarness, foreign: Foreign, handed_over: dict[str, Any], detail: str
) -> None:
    (bad,) = await harness.push(push_body({**DELIVERED, "number": "B1"}))
    assert await foreign.read(**handed_over) == 1
    (good,) = await harness.push(push_body(DELIVERED))
    await foreign.read()
    await harness.work()
    ((message_id, cause, why),) = await harness.rows(
        "SELECT message_id, cause, detail FROM statesvc.dead_letter"
    )
    assert (message_id, cause) == (bad, "normalizer_failed")
    assert detail in why
    assert await harness.rows("SELECT message_id FROM statesvc.message") == [(good,)]


async def test_a_reading_without_a_number_is_judged_as_our_own(
    harness: WorkerHarness, foreign: Foreign
) -> None:
    (reading,) = normalize(push_body(DELIVERED), datetime.now(UTC)).readings
    await harness.push(push_body(DELIVERED))
    await foreign.read(
        document=dump(Normalized(readings=(replace(reading, tracking_number=None),)))
    )
    await harness.work()
    assert await harness.rows("SELECT cause FROM statesvc.dead_letter") == [("no_tracking_number",)]


async def test_a_body_that_was_changed_is_no_evidence_whoever_read_it(
    harness: WorkerHarness, foreign: Foreign
) -> None:
    await harness.push(push_body(DELIVERED))
    await foreign.read()
    await harness.as_owner(
        "UPDATE statesvc.body SET sealed = set_byte(sealed, 60, get_byte(sealed, 60) # 1)"
    )
    await harness.work()
    assert await harness.rows("SELECT cause FROM statesvc.dead_letter") == [("unreadable",)]


async def test_a_hand_over_after_the_lease_was_lost_is_not_taken(
    harness: WorkerHarness, foreign: Foreign
) -> None:
    await harness.push(push_body(DELIVERED))
    ((message_id, token, _, _),) = await foreign.claim(timedelta(seconds=5))
    await harness.database.clock.advance(6)
    held: list[Message] = await harness.claim()
    assert [message.message_id for message in held] == [message_id]
    late = json.dumps([{"message_id": str(message_id), "normalizer": "acme@node-1", "events": ""}])
    assert await harness.value("SELECT statesvc.settle(%s, %s::jsonb)", token, late) == 0
    await harness.process(held)
    assert await harness.rows("SELECT normalizer FROM statesvc.message") == [("acme@1",)]


async def test_a_declined_message_goes_to_those_that_read_everything_uncharged(
    harness: WorkerHarness, foreign: Foreign
) -> None:
    (message_id,) = await harness.push(push_body(DELIVERED))
    ((_, token, _, _),) = await foreign.claim()
    assert await harness.value("SELECT statesvc.decline(%s, %s)", token, [message_id]) == 1
    assert await harness.value("SELECT statesvc.decline(%s, %s)", token, [message_id]) == 0
    assert await foreign.claim() == []
    (message,) = await harness.claim()
    assert (message.message_id, message.attempts) == (message_id, 1)
    await harness.process([message])
    assert await harness.rows("SELECT normalizer FROM statesvc.message") == [("acme@1",)]


async def test_claims_of_raw_messages_hide_no_handed_over_message_from_the_others(
    harness: WorkerHarness, foreign: Foreign
) -> None:
    # they would, if they moved the low-water marks past what they do not look at
    (message_id,) = await harness.push(push_body(DELIVERED))
    await foreign.read()
    for _ in range(3):
        await harness.database.clock.advance(25)
        assert await foreign.claim() == []
    found = await harness.rows(
        "SELECT message_id FROM statesvc.claim('ours', 64, '30 seconds', 'any')"
    )
    assert found == [(message_id,)]
    for _ in range(3):
        await harness.database.clock.advance(35)
        assert await foreign.claim() == []
    found = await harness.rows(
        "SELECT message_id FROM statesvc.claim('ours', 64, '30 seconds', 'any')"
    )
    assert found == [(message_id,)], "nor one whose lease has ended"
