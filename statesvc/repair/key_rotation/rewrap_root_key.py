"""The root key after its KMS rotated the key that wraps it."""

from typing import Any

from psycopg import AsyncConnection

from statesvc.database.kms.kms import Kms
from statesvc.database.kms.root_key import read_wrapped, unwrapped
from statesvc.database.queries import queries

_SQL = queries("statesvc.repair.key_rotation", "rewrap_root_key")


async def rewrap_root_key(connection: AsyncConnection[Any], kms: Kms) -> bool:
    """Has the KMS wrap it again, under the newest version of its key. `connection` as the owner. Raises KmsError."""
    found = await read_wrapped(connection, kms)
    if found is None or not await kms.is_outdated(found[1]):
        return False
    new = await kms.wrap(await unwrapped(kms, *found))
    done = await connection.execute(_SQL["rewrap"], {"kms": kms.name, "old": found[1], "new": new})
    return done.rowcount == 1
