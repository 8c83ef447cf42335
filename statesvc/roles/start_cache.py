"""A file with which `ingress` starts while the database does not answer: wrapped keys, and API keys
for pushes.

Mode 0600, and useless without the master key: the API keys are sealed under the inbox key.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import orjson
import structlog
from psycopg import AsyncConnection
from pydantic import TypeAdapter, ValidationError

from events.crypto.keyring import Keyring
from events.crypto.sealing import SealError
from statesvc.background.periodic import Periodic
from statesvc.database.data_dir import write_private
from statesvc.database.keyring_store import load_keyring, open_keyring, read_sealed
from statesvc.database.kms.root_key import read_wrapped, unwrapped
from statesvc.database.pool import Connections
from statesvc.http.keys.kept_keys import KeptKey, KeptKeys, read_push_keys
from statesvc.roles.master_key import KeySources
from statesvc.spool.drainer import ServerClock

FILE: Final = "ingress-start.json"
_EVERY_SECONDS: Final = 60.0
_CONTEXT: Final = b"ingress start"
_KEYS: Final = TypeAdapter(list[KeptKey])
_log = structlog.get_logger()


class OtherKeysError(RuntimeError):
    """The database has other keys than those with which ingress started without it."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"the database has other keys than {path}, with which ingress started while it"
            " was away: DATABASE_URL leads elsewhere now"
        )


@dataclass(slots=True)
class StartCache:
    """`keyring`: that of the file, if this process started with it."""

    path: Path
    sources: KeySources
    keys: KeptKeys
    clock: ServerClock
    keyring: Keyring | None = None
    _written: object = None

    @property
    def why_missing(self) -> str:
        return (
            f"the database does not answer, and there is no {self.path} of an earlier"
            " start, with whose keys "
            "ingress could keep messages without it"
        )

    async def open(self) -> Keyring | None:
        """Open the file; None: there is none, or it belongs to another master key. Raises
        KmsError.
        """
        try:
            found = orjson.loads(await asyncio.to_thread(self.path.read_bytes))
            root = b""
            if self.sources.kms is not None:
                root = await unwrapped(self.sources.kms, *map(bytes.fromhex, found["root"]))
            sealed = {name: bytes.fromhex(key) for name, key in found["keys"].items()}
            keyring = open_keyring(self.sources.opened(root), sealed)
            opened = keyring.inbox.open(bytes.fromhex(found["sealed"]), _CONTEXT)
            self.keys.keep(_KEYS.validate_json(opened))
        except FileNotFoundError:
            return None
        except (OSError, KeyError, TypeError, SealError, ValidationError, ValueError) as error:
            _log.warning("start_file_unusable", files=str(self.path), why=str(error))
            return None
        self.clock.offset = timedelta(seconds=float(found["clock_offset"]))
        self.keyring = keyring
        return keyring

    async def check(self, connection: AsyncConnection[Any]) -> None:
        """Check that the database has the keys of the file. Raises OtherKeysError."""
        if self.keyring is not None:
            keyring = await load_keyring(connection, self.keyring.master)
            if keyring.inbox.key_id != self.keyring.inbox.key_id:
                raise OtherKeysError(self.path)

    def writer(self, pool: Connections, keyring: Keyring) -> Periodic:
        """Return the job that keeps the file up to date."""

        async def work() -> None:
            async with pool.connection() as connection:
                await self._write(connection, keyring)

        return Periodic(
            "start file", work, every_seconds=_EVERY_SECONDS, retry_seconds=5, jitter=0.2
        )

    async def _write(self, connection: AsyncConnection[Any], keyring: Keyring) -> None:
        kms = self.sources.kms
        root = None if kms is None else await read_wrapped(connection, kms)
        keys = await read_push_keys(connection)
        self.keys.keep(keys)
        wanted = (await read_sealed(connection), root, keys)
        if wanted != self._written:
            content: Mapping[str, Any] = {
                "keys": {name: key.hex() for name, key in wanted[0].items()},
                "root": None if root is None else [part.hex() for part in root],
                "sealed": keyring.inbox.seal(
                    orjson.dumps([asdict(key) for key in keys]), _CONTEXT
                ).hex(),
                "clock_offset": self.clock.offset.total_seconds(),
            }
            await asyncio.to_thread(self._replace, orjson.dumps(content).decode())
            self._written = wanted

    def _replace(self, text: str) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(self.path, text)
