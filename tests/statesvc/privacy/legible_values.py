"""Legible values of a database: every table, opened with every key that the service holds,
until nothing more opens.
"""

from collections.abc import Iterable
from typing import Any

from psycopg import AsyncConnection

from events.crypto.keyring import (
    Keyring,
    body_context,
    body_key_wrap,
    part_context,
    references_context,
    shipment_context,
)
from events.crypto.sealing import SALT_BYTES, MasterKeys, SealError, SealingKey
from statesvc.database.keyring_store import service_context
from statesvc.log.json_compression import decompress_json

MASTER = SealingKey(bytes(range(32)))


async def legible(connection: AsyncConnection[Any], further: Iterable[bytes] = ()) -> bytes:
    """Return all that can be read in the tables (`further`: in files beside them), plain or
    unsealed, one value after the other.
    """
    values = [_decompressed(value) for value in (*await _values(connection), *further)]
    event_ids = {
        value.decode() for value in values if value[:3] in {b"d1-", b"e1-"} and len(value) < 40
    }
    contexts = await _contexts(connection, event_ids)
    keys = {key.key_id: key for key in (MASTER, *await _wraps(connection))}
    sealed = {value for value in values if value[:1] in {b"\x01", b"\x02"} and len(value) > 37}
    found = [value for value in values if value not in sealed]
    progress = True
    while progress:
        progress = False
        for value in list(sealed):
            key = keys.get(value[1:9])
            plain = None if key is None else _opened(key, value, contexts)
            if plain is None:
                continue
            progress = True
            sealed.remove(value)
            found += (plain, _decompressed(plain[SALT_BYTES:]))
            if len(plain) == 32:
                fresh = SealingKey(plain)
                keys[fresh.key_id] = fresh
                # were it the digest key
                derived = Keyring(
                    master=MasterKeys([bytes(range(32))]), digest_key=plain, inbox=fresh
                ).references
                keys[derived.key_id] = derived
            elif plain[:1] == b"\x01":
                sealed.add(plain)
    return b"\n".join(found)


def _decompressed(value: bytes) -> bytes:
    """Return a value as it is stored without compression."""
    try:
        return decompress_json(value)
    except ValueError:
        return value


def _opened(key: SealingKey, value: bytes, contexts: Iterable[bytes]) -> bytes | None:
    for context in contexts:
        try:
            return key.open(value, context)
        except SealError:
            continue
    return None


async def _values(connection: AsyncConnection[Any]) -> list[bytes]:
    values: list[bytes] = []
    columns = await _rows(
        connection,
        "SELECT c.oid::regclass::text, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid"
        " = c.oid AND a.attnum > 0 WHERE relnamespace = 'statesvc'::regnamespace AND relkind IN"
        " ('r', 'p') AND NOT relispartition AND atttypid::regtype::text IN ('bytea', 'bytea[]',"
        " 'text', 'text[]', 'jsonb') AND NOT attisdropped",
    )
    for table, column in columns:
        for (cell,) in await _rows(
            connection, f'SELECT "{column}" FROM {table} WHERE "{column}" IS NOT NULL'
        ):
            members = cell if isinstance(cell, list) else [cell]
            values += [
                bytes(member) if isinstance(member, bytes | memoryview) else str(member).encode()
                for member in members
            ]
    return values


async def _contexts(connection: AsyncConnection[Any], event_ids: set[str]) -> list[bytes]:
    contexts = [service_context(name) for name in ("digest", "inbox")]
    for (message_id,) in await _rows(
        connection,
        "SELECT message_id FROM statesvc.body UNION SELECT message_id FROM statesvc.message",
    ):
        contexts.append(body_context(message_id))
    for (shipment_id,) in await _rows(connection, "SELECT shipment_id FROM statesvc.stream"):
        contexts.append(shipment_context(shipment_id))
        keys = {
            event_id
            for (event_id,) in await _rows(connection, "SELECT event_id FROM statesvc.event_key")
        }
        contexts += [part_context(shipment_id, event_id) for event_id in keys | event_ids]
        for (webhook_id,) in await _rows(
            connection, "SELECT DISTINCT webhook_id FROM statesvc.notification"
        ):
            contexts.append(part_context(shipment_id, webhook_id))
    attached = await _rows(
        connection, "SELECT carrier_id, number FROM statesvc.shipment_references"
    )
    return [*contexts, *(references_context(*number) for number in attached)]


async def _wraps(connection: AsyncConnection[Any]) -> list[SealingKey]:
    """Return what wraps the keys of bodies, made of the keys that are left of the shipments
    that each message names.
    """
    left = {
        shipment_id: MASTER.unwrap(sealed, shipment_context(shipment_id))
        for shipment_id, sealed in await _rows(
            connection,
            "SELECT shipment_id, sealed_key FROM statesvc.stream WHERE octet_length(sealed_key)"
            " = 69",
        )
        if MASTER.sealed(sealed)
    }
    return [
        body_key_wrap(
            {shipment_id: left[shipment_id] for shipment_id in shipments if shipment_id in left},
            message_id,
        )
        for message_id, shipments in await _rows(
            connection, "SELECT message_id, shipments FROM statesvc.message"
        )
    ]


async def _rows(connection: AsyncConnection[Any], query: str) -> list[Any]:
    return await (await connection.execute(query.encode())).fetchall()
