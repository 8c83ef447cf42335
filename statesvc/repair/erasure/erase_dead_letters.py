"""Dead letters that name an erased number. Nobody could read them, so their bodies are sealed under the inbox key, not a shipment's."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring, body_context
from events.crypto.sealing import SealError, unsalted
from events.identity import normalize_number
from statesvc.bodies.find_bodies import find_bodies
from statesvc.database.queries import queries

_SQL = queries("statesvc.repair.erasure", "erase_shipment")
_ENCODINGS: Final = ("utf-8", "utf-16-le", "utf-16-be", "latin-1")
BATCH: Final = 200
Progress = Callable[[int], None]
"""`(letters looked at)`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Whose letters, for which number. `folder`: the archive, where bodies may be by now."""

    carrier_id: str
    number: str
    actor: str
    keyring: Keyring
    folder: Path | None


@dataclass(slots=True)
class Silenced:
    """`named` of the letters looked at lost their key. `next_after`: where to go on; None: all were looked at."""

    looked_at: int = 0
    named: int = 0
    next_after: int | None = None


async def silence_some(connection: AsyncConnection[Any], search: Search, *, after: int = 0) -> Silenced:
    """Looks into the bodies of the next letters, and takes the keys of those that name the number. Safe to stop, and to run again."""
    cursor = await connection.execute(
        _SQL["sealed_letters"], {"carrier_id": search.carrier_id, "after": after, "limit": BATCH}, binary=True
    )
    letters = await cursor.fetchall()
    if not letters:
        return Silenced()
    bodies = await find_bodies(connection, search.folder, [(message_id, received_at) for _, message_id, received_at, _ in letters])
    naming = []
    for letter_id, message_id, _, sealed_key in letters:
        body = bodies.get(message_id)
        if body is None:
            continue
        try:
            key = search.keyring.inbox.unwrap(sealed_key, body_context(message_id))
            text = unsalted(key.open(body.sealed, body_context(message_id)))
        except SealError:
            # nobody opens it: nothing personal is left in it
            continue
        if names(text, search.number):
            naming.append(letter_id)
    if naming:
        await connection.execute(_SQL["silence_letters"], {"dead_letter_ids": naming, "actor": search.actor})
    return Silenced(looked_at=len(letters), named=len(naming), next_after=letters[-1][0] if len(letters) == BATCH else None)


def names(body: bytes, number: str) -> bool:
    """Whether a body that nobody could parse holds the number, in any of the encodings that carriers send and any spelling of it."""
    return any(number in normalize_number(body.decode(encoding, "ignore")) for encoding in _ENCODINGS)
