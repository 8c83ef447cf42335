"""Code mappings: an operator's rows that override the normalizer from the next claim on.

A claim returns the newest revision, and a worker asks for the rows above its own. The revision that
read a message is appended to its normalizer's version (`1+m7`), so every reading can be explained.
Among the rows of a type and code the narrowest match wins: reason and text, reason, text, any.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from events.event import Event, Raw
from events.identity.ids import text_digest
from events.parsing.meanings import Meaning
from events.vocabulary import Kind, Reason, Status
from statesvc.database.queries import queries

_SQL = queries("statesvc.reading", "code_mapping")

# (carrier_id, type, code) as they stand in clear in the log; None: the carrier prints none.
Code = tuple[str, str | None, str | None]
# (reason, digest of the text); None: any.
Narrowed = tuple[str | None, str | None]
MappingColumns = tuple[
    int, str, str | None, str | None, str | None, str | None, str | None, str | None, str | None
]
_ANY: Final[Narrowed] = (None, None)


@dataclass(slots=True)
class Mappings:
    """The rows as far as this process has read them; only ever moves forward."""

    revision: int = 0
    table: dict[Code, dict[Narrowed, Meaning]] = field(default_factory=dict)

    async def refresh(self, connection: AsyncConnection[Any]) -> None:
        """Read the rows that were added since. Call it between the claim and the reading."""
        cursor = await connection.execute(_SQL["mappings_since"], {"revision": self.revision})
        self.take(await cursor.fetchall())

    def take(self, rows: Iterable[MappingColumns]) -> None:
        """Add rows in the order of their revision; known rows have no effect."""
        for (
            revision,
            carrier_id,
            raw_type,
            raw_code,
            raw_reason,
            raw_text,
            kind,
            status,
            reason,
        ) in rows:
            # two batches of this process may ask at the same time
            if revision <= self.revision:
                continue
            self.revision = revision
            meaning = meaning_of_row(kind, status, reason)
            self._put((carrier_id, raw_type, raw_code), (raw_reason, raw_text), meaning)

    def read(self, events: tuple[Event, ...], keyring: Keyring) -> tuple[Event, ...]:
        """Apply the mappings; return the same object where no row is about the events."""
        if not self.table:
            return events
        mapped = tuple(self._read(event, keyring) for event in events)
        return events if mapped == events else mapped

    def meaning_of(self, carrier_id: str, raw: Raw, text: str | None) -> Meaning | None:
        """Return the mapped meaning of clear raw fields.

        `text`: the digest of the event's text; None: the event has no text, or it is
        unknown.
        """
        rows = self.table.get((carrier_id, raw.type, raw.code))
        if rows is None:
            return None
        narrowest = ((raw.reason, text), (raw.reason, None), (None, text), _ANY)
        return next((rows[narrowed] for narrowed in narrowest if narrowed in rows), None)

    def version(self, version: str) -> str:
        """Return the normalizer's version with the revision of the row that changed the reading."""
        return f"{version}+m{self.revision}"

    def _put(self, code: Code, narrowed: Narrowed, meaning: Meaning | None) -> None:
        if meaning is not None:
            self.table.setdefault(code, {})[narrowed] = meaning
            return
        rows = self.table.get(code, {})
        rows.pop(narrowed, None)
        if not rows:
            self.table.pop(code, None)

    def _read(self, event: Event, keyring: Keyring) -> Event:
        rows = self.table.get((event.carrier_id, event.raw.type, event.raw.code))
        if rows is None:
            return event
        described = event.personal.description
        # a digest only where a row asks for a text: it is an HMAC an event
        digested = described is not None and any(text is not None for _, text in rows)
        text = (
            text_digest(described, keyring.carrier_digest(event.carrier_id))
            if described is not None and digested
            else None
        )
        meaning = self.meaning_of(event.carrier_id, event.raw, text)
        if meaning is None:
            return event
        return replace(
            event,
            kind=meaning.kind,
            status=meaning.status,
            reason=meaning.reason,
            # an operator's word is no guess by category
            by_category=False,
            # what was a correction by the normalizer may be a scan by the row: it corrects no event
            # then
            corrects=None,
        )


def meaning_of_row(kind: str | None, status: str | None, reason: str | None) -> Meaning | None:
    """Return the meaning of a row; None: the normalizer's own."""
    return (
        None
        if kind is None
        else Meaning(
            Kind(kind), Status(status) if status else None, Reason(reason) if reason else None
        )
    )
