"""The root key: made once, wrapped by the KMS, unwrapped at each start, used as a master key.

So the KMS is asked once a start and not once a shipment, its key never enters our processes, and
the data stays closed to everyone whom the KMS refuses.
"""

from typing import Any

from psycopg import AsyncConnection

from events.crypto.sealing import KEY_BYTES, SealingKey
from statesvc.database.kms.kms import Kms, KmsError
from statesvc.database.queries import queries

_SQL = queries("statesvc.database.kms", "root_key")


async def load_root_key(connection: AsyncConnection[Any], kms: Kms, *, make: bool) -> bytes:
    """Load the root key under this KMS's key; `make` a new one if there is none.

    Raises KmsError.
    """
    found = await read_wrapped(connection, kms)
    if found is None and make:
        key = SealingKey.fresh()
        parameters = {"kms": kms.name, "key_id": key.key_id, "wrapped": await kms.wrap(key.key)}
        await connection.execute(_SQL["insert"], parameters)
        # another process may have been first
        found = await read_wrapped(connection, kms)
    if found is None:
        raise KmsError(
            f"{kms.name} wraps no key of this database yet: `statesvc up` or `statesvc keys"
            " rotate-master` makes it"
        )
    return await unwrapped(kms, *found)


async def is_outdated(connection: AsyncConnection[Any], kms: Kms) -> bool:
    """Return whether the KMS's key was rotated since the root key was wrapped. Raises KmsError."""
    found = await read_wrapped(connection, kms)
    return found is not None and await kms.is_outdated(found[1])


async def read_wrapped(connection: AsyncConnection[Any], kms: Kms) -> tuple[bytes, bytes] | None:
    """Return the root key's id, and the key as the KMS wrapped it; None: there is none."""
    return await (await connection.execute(_SQL["read"], {"kms": kms.name}, binary=True)).fetchone()


async def unwrapped(kms: Kms, key_id: bytes, wrapped: bytes) -> bytes:
    """Unwrap the key of this id. Raises KmsError."""
    key = await kms.unwrap(wrapped)
    if len(key) != KEY_BYTES or SealingKey(key).key_id != key_id:
        raise KmsError(f"{kms.name} unwrapped another key than was wrapped")
    return key
