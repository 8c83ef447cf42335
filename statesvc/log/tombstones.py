"""Tombstones: objects outside the database that keep a restore from undoing an erasure.

They cover erased shipments and revoked keys. Erasing or revoking publishes a tombstone before it
reports success; `statesvc log fork` applies all of them again. An object is never changed or
deleted, and names a number, never a person.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import orjson

from events.entry.canonical_json import canonical_bytes
from statesvc.log.checkpoint_store import (
    CheckpointStore,
    CheckpointStoreError,
    FolderCheckpointStore,
    checkpoint_store_at,
)
from statesvc.settings.service_settings import Settings

_FOLDER: Final = "tombstones"
_STORE_SECONDS: Final = 30.0


class TombstoneError(RuntimeError):
    """The places outside the database cannot be written or read now; the message names them."""


class TombstoneKind(StrEnum):
    SHIPMENT = "shipment"
    API_KEY = "api-key"
    LOG_KEY = "log-key"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    """An erasure or revocation. `subject`: the id; `details`: the arguments to apply it again."""

    kind: TombstoneKind
    subject: str
    details: Mapping[str, str]

    @property
    def name(self) -> str:
        """Name of its object, always the same, so a repeated publication changes no object."""
        return f"{self.kind}.{self.subject}"

    @property
    def text(self) -> str:
        return canonical_bytes(
            {"tombstone": self.kind.value, "subject": self.subject, "details": dict(self.details)}
        ).decode()


def _parse(text: str, where: str) -> Tombstone:
    try:
        document: Any = orjson.loads(text)
        details = {str(name): str(value) for name, value in document["details"].items()}
        return Tombstone(
            kind=TombstoneKind(document["tombstone"]), subject=document["subject"], details=details
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TombstoneError(f"{where} has an object among its tombstones that is none") from error


@dataclass(frozen=True, slots=True)
class Tombstones:
    """All places for tombstones. Without a place a restore undoes erasures since the backup."""

    places: Sequence[tuple[CheckpointStore, str]] = ()

    @property
    def names(self) -> list[str]:
        return [f"{store.name}/{folder}" for store, folder in self.places]

    async def publish(self, tombstones: Sequence[Tombstone]) -> None:
        """Store them everywhere. Raises TombstoneError."""
        try:
            async with asyncio.timeout(_STORE_SECONDS):
                for store, folder in self.places:
                    for tombstone in tombstones:
                        await store.add(f"{folder}/{tombstone.name}", tombstone.text)
        except (CheckpointStoreError, TimeoutError) as error:
            raise TombstoneError(str(error) or f"{store.name} does not answer") from error

    async def read(self) -> list[Tombstone]:
        """Read all that lie in any place, in the order of their names. Raises TombstoneError."""
        found: dict[str, Tombstone] = {}
        for store, folder in self.places:
            try:
                texts = await store.read_all(folder)
            except CheckpointStoreError as error:
                raise TombstoneError(str(error)) from error
            found.update(
                (tombstone.name, tombstone)
                for tombstone in (_parse(text, store.name) for text in texts)
            )
        return [found[name] for name in sorted(found)]


def tombstones_of(settings: Settings) -> Tombstones:
    """Return the tombstones next to the published heads: in the store that these go
    to, and next to the file.

    Raises CheckpointStoreError.
    """
    places: list[tuple[CheckpointStore, str]] = []
    if settings.checkpoint.publish is not None:
        places.append((checkpoint_store_at(settings.checkpoint.publish), _FOLDER))
    if settings.checkpoint_file is not None:
        file: Path = settings.checkpoint_file
        places.append((FolderCheckpointStore(file.parent), f"{file.name}.{_FOLDER}"))
    return Tombstones(places)
