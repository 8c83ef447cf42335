"""Rotation of the master key: values under an older key are sealed again, in batches.

Safe under traffic, safe to stop, and to run again. The keys do not change, only their wrapping. A
row changes only if it is still as it was read, so a concurrent erasure or rotation of secrets is
kept.
"""

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring, shipment_context
from events.crypto.sealing import MasterKeys
from statesvc.database.keyring_store import service_context
from statesvc.database.kms.kms import Kms
from statesvc.database.kms.root_key import read_wrapped, unwrapped
from statesvc.database.queries import Columns, byteas, encoded, queries, uuids
from statesvc.database.sql_errors import Failure, failure
from statesvc.log.actions import record_action
from statesvc.log.signing_keys import rewrap_seeds
from statesvc.subscriptions.subscription_secrets import (
    open_headers,
    open_login,
    open_secrets,
    seal_headers,
    seal_login,
    seal_secrets,
)

_SQL = queries("statesvc.privacy", "key_rotation")
_BATCH: Final = 500
_TRIES: Final = 20
_PAUSE_SECONDS: Final = 0.25
_FIRST: Final = UUID(int=0)
_STREAMS: Final[Columns] = {"shipment_ids": uuids, "olds": byteas, "news": byteas}
Connection = AsyncConnection[Any]
# `(shipments examined, estimated total)`.
Progress = Callable[[int, int], None]


@dataclass(slots=True)
class RotatedKeys:
    """Keys that were wrapped again, `root_keys` by a KMS.

    Keys already under the current key are not counted.
    """

    service_keys: int = 0
    log_keys: int = 0
    subscriptions: int = 0
    shipments: int = 0
    root_keys: int = 0


async def rotate(
    connection: Connection, keyring: Keyring, *, actor: str, progress: Progress, root_keys: int = 0
) -> RotatedKeys:
    """Rotate the keys. `connection` as the owner, in autocommit.

    `root_keys`: the number that a KMS has just wrapped again. Raises SealError where a value is
    under a key that the master keys lack.
    """
    rotated = RotatedKeys(root_keys=root_keys)
    await _service_keys(connection, keyring.master, rotated)
    rotated.log_keys = await rewrap_seeds(connection, keyring.master)
    await _subscriptions(connection, keyring, rotated)
    await _streams(connection, keyring.master, rotated, progress)
    # last: a rotation that was stopped is not recorded until a later run has finished it
    details = asdict(rotated)
    async with connection.transaction():
        await record_action(
            connection, actor=actor, verb="rotate_master_key", target="keys", details=details
        )
    return rotated


async def _service_keys(connection: Connection, master: MasterKeys, rotated: RotatedKeys) -> None:
    for name, old in await (await connection.execute(_SQL["service_keys"])).fetchall():
        # by the key's id in the value: nothing is opened to find out
        if not master.current.sealed(old):
            new = master.wrap(master.unwrap(old, service_context(name)), service_context(name))
            done = await connection.execute(
                # only where it is still the value that was read: a rotation that runs beside this
                # one may be further
                _SQL["rewrap_service_key"],
                {"name": name, "old": old, "new": new},
            )
            rotated.service_keys += done.rowcount


async def _subscriptions(connection: Connection, keyring: Keyring, rotated: RotatedKeys) -> None:
    current = keyring.master.current
    for subscription_id, olds, old_login, old_headers in await (
        await connection.execute(_SQL["subscriptions"])
    ).fetchall():
        # each only where it is still what was read: its owner may replace it meanwhile
        if old_login is not None and not current.sealed(old_login):
            new_login = seal_login(
                keyring, subscription_id, open_login(keyring, subscription_id, old_login)
            )
            await connection.execute(
                _SQL["reseal_login"],
                {"subscription_id": subscription_id, "old": old_login, "new": new_login},
            )
        if old_headers is not None and not current.sealed(old_headers):
            new_headers = seal_headers(
                keyring, subscription_id, open_headers(keyring, subscription_id, old_headers)
            )
            await connection.execute(
                _SQL["reseal_headers"],
                {"subscription_id": subscription_id, "old": old_headers, "new": new_headers},
            )
        if not all(current.sealed(old) for old in olds):
            news = seal_secrets(
                keyring, subscription_id, open_secrets(keyring, subscription_id, olds)
            )
            done = await connection.execute(
                _SQL["reseal_secrets"],
                {"subscription_id": subscription_id, "old": byteas(olds), "new": byteas(news)},
            )
            rotated.subscriptions += done.rowcount


async def _streams(
    connection: Connection, master: MasterKeys, rotated: RotatedKeys, progress: Progress
) -> None:
    (total,) = await (await connection.execute(_SQL["count_streams"])).fetchone() or (0,)
    after, seen = _FIRST, 0
    while True:
        cursor = await connection.execute(
            _SQL["streams"], {"after": after, "limit": _BATCH}, binary=True
        )
        found = await cursor.fetchall()
        if not found:
            return
        rows = [
            (
                shipment_id,
                old,
                master.wrap(
                    master.unwrap(old, shipment_context(shipment_id)), shipment_context(shipment_id)
                ),
            )
            for shipment_id, old in found
            if not master.current.sealed(old)
        ]
        if rows:
            rotated.shipments += await rewrap(connection, rows)
        # by id, not by offset: streams are added while this runs
        after, seen = found[-1][0], seen + len(found)
        progress(seen, max(total, seen))


async def rewrap(connection: Connection, rows: list[tuple[UUID, bytes, bytes]]) -> int:
    """Wrap keys again while appends lock these rows too: on a deadlock or a lock timeout the
    statement is tried again.
    """
    for attempt in range(1, _TRIES + 1):
        try:
            return (
                await connection.execute(_SQL["rewrap_streams"], encoded(rows, _STREAMS))
            ).rowcount
        except psycopg.Error as error:
            if failure(error) is not Failure.TRANSIENT or attempt == _TRIES:
                raise
        await asyncio.sleep(_PAUSE_SECONDS)
    return 0


async def rewrap_root_key(connection: Connection, kms: Kms) -> bool:
    """Have the KMS wrap the root key again, under the newest version of the KMS's key.

    `connection` as the owner. Raises KmsError.
    """
    found = await read_wrapped(connection, kms)
    if found is None or not await kms.is_outdated(found[1]):
        return False
    new = await kms.wrap(await unwrapped(kms, *found))
    done = await connection.execute(
        _SQL["rewrap_root_key"], {"kms": kms.name, "old": found[1], "new": new}
    )
    return done.rowcount == 1
