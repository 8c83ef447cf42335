"""Messages for a spool, and a disk that forgets at a power loss what was not synced."""

import os
import secrets
from datetime import UTC, datetime
from pathlib import Path

import pytest

from events.crypto.keyring import Keyring
from events.crypto.sealing import MasterKeys, SealingKey
from statesvc.bodies.sealed_message import seal_message
from statesvc.spool.spool import SpooledMessage


@pytest.fixture(scope="session")
def keyring() -> Keyring:
    return Keyring(
        master=MasterKeys([secrets.token_bytes(32)]),
        digest_key=secrets.token_bytes(32),
        inbox=SealingKey.fresh(),
    )


def sealed(keyring: Keyring, body: str, carrier_id: str = "acme") -> SpooledMessage:
    message = seal_message(keyring, carrier_id, body.encode(), "{}")
    return SpooledMessage(message, datetime.now(UTC))


class Disk:
    """Notes what was synced; `lose_power` drops all other bytes, but for a torn part of them."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._synced: dict[int, int] = {}

    def sync(self, descriptor: int) -> None:
        found = os.fstat(descriptor)
        self._synced[found.st_ino] = found.st_size

    def lose_power(self, *, torn_bytes: int = 0) -> None:
        for path in self._root.rglob("*.journal"):
            kept = self._synced.get(path.stat().st_ino, 0)
            os.truncate(path, min(path.stat().st_size, kept + torn_bytes))
