"""Workers in another language beside ours, on one inbox: each message takes effect once."""

import asyncio
import json
import random
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from psycopg import AsyncConnection, errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from events.carriers import CARRIERS
from events.crypto.keyring import Keyring
from events.identity.ids import identify
from statesvc.bodies.sealed_message import seal_message
from statesvc.database.keyring_store import load_keyring, parse_master_keys
from statesvc.ingress.group_commit import put
from tests.acceptance.processes import MASTER_KEY, Service
from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.stories import Message, messages
from tests.acceptance.test_crash import SHORT_LEASE
from tests.node.fleet import Fleet
from tests.node.grants import foreign_role
from tests.world.postgres import Server


def _plain_scan(number: int) -> Message:
    """Print a scan exactly as the example for Node.js reads it."""
    event = {
        "event_id": f"plain{number:06}",
        "tracking_number": f"PL{number // 3:06}",
        "occurred_at": f"2026-05-0{1 + number % 3}T10:00:00+02:00",
        "status": ("picked_up", "in_transit", "delivered")[number % 3],
    }
    return Message("canonical", json.dumps(event, separators=(",", ":")).encode())


async def _put(service: Service, keyring: Keyring, pushed: list[Message]) -> set[UUID]:
    """Put messages as the ingress does, without its HTTP."""
    async with await AsyncConnection.connect(service.service_dsn, autocommit=True) as connection:
        stored = await put(
            connection,
            [seal_message(keyring, message.carrier_id, message.body, "{}") for message in pushed],
        )
        await connection.execute("SELECT pg_notify('statesvc_inbox', '')")
    assert not any(message.duplicate for message in stored)
    return {message.message_id for message in stored}


def _in_another_envelope(message: Message) -> Message:
    return Message(message.carrier_id, message.body + b" ")


Told = dict[tuple[str, str], bytes]
"""(carrier_id, event_id) -> facts digest"""


def _as_ours_alone(pushed: list[Message], keyring: Keyring) -> Told:
    now = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
    events = (
        identify(
            reading,
            carrier_id=message.carrier_id,
            digest=keyring.carrier_digest(message.carrier_id),
        )
        for message in pushed
        for reading in CARRIERS[message.carrier_id].read(message.body, now).readings
    )
    return {(event.carrier_id, event.event_id): event.facts_digest for event in events}


async def _as_logged(service: Service) -> Told:
    query = """
        SELECT carrier_id, event_id, facts_digest FROM statesvc.event
        JOIN statesvc.event_key USING (carrier_id, event_id)"""
    rows = await service.rows(query)
    told = {(carrier_id, event_id): digest for carrier_id, event_id, digest in rows}
    assert len(told) == len(rows), "an event stands twice in the log"
    return told


def _reader(server: Server, service: Service) -> AbstractAsyncContextManager[str]:
    superuser_dsn = make_conninfo(
        server.superuser_dsn, dbname=conninfo_to_dict(service.owner_dsn)["dbname"]
    )
    return foreign_role(superuser_dsn, service.service_dsn)


async def _keyring(service: Service) -> Keyring:
    async with await AsyncConnection.connect(service.service_dsn, autocommit=True) as connection:
        return await load_keyring(connection, parse_master_keys(MASTER_KEY))


async def _assert_as_ours_alone(service: Service, keyring: Keyring, pushed: list[Message]) -> None:
    assert (
        await service.rows("SELECT cause, detail FROM statesvc.dead_letter WHERE kind = 'message'")
        == []
    )
    assert await _as_logged(service) == _as_ours_alone(pushed, keyring)
    assert await service.value("SELECT count(*) FROM statesvc.conflict") == 0


async def test_a_role_of_its_own_may_do_what_the_protocol_says_and_nothing_else(
    service_maker: ServiceMaker, server: Server, tmp_path: Path
) -> None:
    service = await service_maker(tmp_path, {})
    await _put(service, await _keyring(service), messages(4, seed=5))
    async with (
        _reader(server, service) as dsn,
        await AsyncConnection.connect(dsn, autocommit=True) as connection,
    ):

        async def says(query: str, *parameters: object) -> list[Any]:
            return await (await connection.execute(query.encode(), parameters)).fetchall()

        claimed = await says(
            "SELECT token, message_id FROM statesvc.claim('reader', 4, '5 s', 'raw', 4194304, true)"
        )
        token, buried, declined, retried, released = (
            claimed[0][0],
            *([message_id] for _, message_id in claimed),
        )
        assert await says("SELECT statesvc.extend(%s, '30 s')", token) == [(4,)]
        assert await says(
            "SELECT statesvc.bury(%s, %s, ARRAY['unreadable'], ARRAY['why'])", token, buried
        ) == [(1,)]
        assert await says("SELECT statesvc.decline(%s, %s)", token, declined) == [(1,)]
        assert await says(
            "SELECT statesvc.retry(%s, %s, ARRAY['1 h'::interval], ARRAY['Lost'])", token, retried
        ) == [(1,)]
        assert (await says("SELECT statesvc.next_due() IS NOT NULL"))[0][0]
        assert await says("SELECT statesvc.release(%s)", token) == [(1,)]
        assert await says(
            "SELECT message_id FROM statesvc.claim('reader', 4, '5 s', 'raw', 4194304, true)"
        ) == [(released[0],)]
        for table in (
            "event",
            "shipment",
            "stream",
            "service_key",
            "dead_letter",
            "message",
            "api_key",
        ):
            with pytest.raises(errors.InsufficientPrivilege):
                await says(f"SELECT FROM statesvc.{table}")


@pytest.mark.parametrize(
    ("count", "kills"), [(2_000, 8), pytest.param(10_000, 40, marks=pytest.mark.soak)]
)
async def test_workers_of_both_kinds_killed_at_random_give_each_message_its_effect_once(
    service_maker: ServiceMaker, server: Server, tmp_path: Path, count: int, kills: int
) -> None:
    chance = random.Random(count)
    service = await service_maker(tmp_path, {**SHORT_LEASE, "STATESVC_WORKER_BATCH_MAX": "64"})
    keyring = await _keyring(service)
    again = count // 10
    said = [*messages(count // 2, seed=11), *map(_plain_scan, range(count // 2 - again))]
    pushed = [*said, *map(_in_another_envelope, chance.sample(said, again))]
    chance.shuffle(pushed)
    async with (
        _reader(server, service) as reader_dsn,
        service,
        Fleet(service, keyring, reader_dsn, tmp_path) as fleet,
    ):
        acknowledged = set()
        for place in range(kills):
            acknowledged |= await _put(
                service, keyring, pushed[place * count // kills : (place + 1) * count // kills]
            )
            await asyncio.sleep(chance.uniform(0, 0.05))
            await fleet.kill_one(("node", "python")[place % 2], chance)
        await service.drained(120)
        settled = [
            message_id
            for (message_id,) in await service.rows("SELECT message_id FROM statesvc.message")
        ]
        assert (len(settled), set(settled)) == (count, acknowledged)
        await _assert_as_ours_alone(service, keyring, pushed)
        readers = dict(
            await service.rows("SELECT normalizer, count(*)::int FROM statesvc.message GROUP BY 1")
        )
        print(  # noqa: T201
            f"{count} messages, read by {readers}; killed while they held a lease:"
            f" {fleet.killed_at_work}"
        )
        assert readers.keys() == {"ups@1", "canonical@1", "canonical@js-1"}
        assert min(fleet.killed_at_work.values()) > 0, (
            "nobody was killed at work: this proved nothing"
        )

        await fleet.stop_node()
        await _put(
            service,
            keyring,
            [Message(message.carrier_id, b"\n" + message.body) for message in said],
        )
        await service.drained(120)
        assert await service.value("SELECT count(*) FROM statesvc.message") == count + len(said)
        await _assert_as_ours_alone(service, keyring, pushed)
