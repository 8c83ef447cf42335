"""The whole log recomputed from its canonical bytes, as an auditor would do it."""

import hashlib
import json
from collections import defaultdict
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring, part_context
from events.crypto.sealing import commitment
from statesvc.log.json_compression import decompress_json

ORDER = ("event", "conflict", "transition", "fanout", "attempt", "observation", "action")


async def check_log(connection: AsyncConnection[Any], keyring: Keyring) -> int:
    """Assert chains, hashes, columns, seals and batches; return the number of entries."""

    async def rows(query: str) -> list[Any]:
        return await (await connection.execute(query.encode())).fetchall()

    entries: dict[int, dict[int, tuple[int, bytes]]] = defaultdict(dict)
    for place, table in enumerate(ORDER):
        for batch_id, ordinal, stored, recorded_at in await rows(
            f"SELECT batch_id, ordinal, canonical, recorded_at FROM statesvc.{table}"
        ):
            canonical = decompress_json(stored)
            leaf_hash = hashlib.sha256(b"\x00" + canonical).digest()
            document = json.loads(canonical)
            assert (document["entry"], document["format"]) == (table, 1)
            assert datetime.fromisoformat(document["recorded_at"]) == recorded_at
            assert ordinal not in entries[batch_id]
            entries[batch_id][ordinal] = (place, leaf_hash)

    batches = await rows("SELECT batch_id, entries, leaf_hashes FROM statesvc.batch")
    assert {batch_id for batch_id, _, _ in batches} == set(entries)
    for batch_id, count, leaf_hashes in batches:
        found = [entries[batch_id][ordinal] for ordinal in range(count)]
        assert len(entries[batch_id]) == count
        assert b"".join(leaf_hash for _, leaf_hash in found) == leaf_hashes
        assert [place for place, _ in found] == sorted(place for place, _ in found), (
            "the kinds stand in their order"
        )

    await _check_streams(
        await rows(
            "SELECT * FROM (SELECT shipment_id, version, head_hash, recorded_at, sealed_key FROM"
            " statesvc.stream) s"
        ),
        rows,
        keyring,
    )
    return sum(map(len, entries.values()))


async def _check_streams(streams: list[Any], rows: Any, keyring: Keyring) -> None:
    chains: dict[UUID, list[Any]] = defaultdict(list)
    for shipment_id, *event in await rows(
        "SELECT shipment_id, version, recorded_at, canonical, sealed_part, event_id, message_id,"
        " kind, status, carrier_code FROM statesvc.event ORDER BY shipment_id, version"
    ):
        chains[shipment_id].append(event)
    for shipment_id, version, head_hash, head_recorded_at, sealed_key in streams:
        key = None if sealed_key is None else keyring.open_shipment_key(sealed_key, shipment_id)
        previous_hash, previous_at = bytes(32), None
        for place, event in enumerate(chains.pop(shipment_id, []), start=1):
            (
                number,
                recorded_at,
                stored,
                sealed_part,
                event_id,
                message_id,
                kind,
                status,
                carrier_code,
            ) = event
            canonical = decompress_json(stored)
            document = json.loads(canonical)
            assert (number, document["version"]) == (place, place)
            assert document["previous_hash"] == previous_hash.hex()
            assert previous_at is None or recorded_at > previous_at, "recorded_at strictly grows"
            assert (document["shipment_id"], document["event_id"], document["message_id"]) == (
                str(shipment_id),
                event_id,
                str(message_id),
            )
            assert (document["kind"], document.get("status"), document.get("carrier_code")) == (
                kind,
                status,
                carrier_code,
            )
            if sealed_part is None:
                assert "part_commitment" not in document
            elif key is not None:
                part = key.open(sealed_part, part_context(shipment_id, event_id))
                assert commitment(part).hex() == document["part_commitment"]
            previous_hash, previous_at = hashlib.sha256(b"\x00" + canonical).digest(), recorded_at
        if previous_at is not None:
            assert (version, head_hash, head_recorded_at) == (place, previous_hash, previous_at)
    assert not chains, "events without a stream"
