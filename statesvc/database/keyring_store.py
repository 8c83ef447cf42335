"""Loading the keyring: the digest key and the inbox key are made once, under the master
key, by the first process.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from events.crypto.sealing import MasterKeys, SealingKey
from statesvc.database.queries import queries

SQL = queries("statesvc.database", "keyring_store")
_NAMES: Final = ("digest", "inbox")


class MasterKeyError(ValueError):
    """STATESVC_MASTER_KEY is missing or malformed."""


def parse_master_keys(text: str) -> MasterKeys:
    """Parse comma-separated base64 of 32 bytes each; the first is current."""
    keys = []
    for place, part in enumerate(
        filter(None, (piece.strip() for piece in text.split(","))), start=1
    ):
        try:
            key = base64.b64decode(part, validate=True)
        except binascii.Error:
            raise MasterKeyError(f"STATESVC_MASTER_KEY: key {place} is not base64") from None
        if len(key) != 32:
            raise MasterKeyError(
                f"STATESVC_MASTER_KEY: key {place} has {len(key)} bytes, it needs 32 (openssl rand"
                " -base64 32)"
            )
        keys.append(key)
    if not keys:
        raise MasterKeyError(
            "STATESVC_MASTER_KEY is not set: make one with `openssl rand -base64 32` and keep it"
            " safe; without it nothing opens"
        )
    return MasterKeys(keys)


async def load_keyring(connection: AsyncConnection[Any], master: MasterKeys) -> Keyring:
    found = await read_sealed(connection)
    for name in _NAMES:
        if name not in found:
            sealed = master.wrap(SealingKey.fresh(), service_context(name))
            await connection.execute(SQL["insert_key"], {"name": name, "sealed_key": sealed})
    if len(found) < len(_NAMES):
        found = await read_sealed(connection)
    return open_keyring(master, found)


async def read_sealed(connection: AsyncConnection[Any]) -> dict[str, bytes]:
    """Return the service's keys by name, wrapped."""
    return dict(await (await connection.execute(SQL["read_keys"], binary=True)).fetchall())


def open_keyring(master: MasterKeys, sealed: Mapping[str, bytes]) -> Keyring:
    digest, inbox = (master.unwrap(sealed[name], service_context(name)) for name in _NAMES)
    return Keyring(master=master, digest_key=digest.key, inbox=inbox)


def service_context(name: str) -> bytes:
    """Return the context that binds the wrap of a service key."""
    return b"service\x1f" + name.encode()
