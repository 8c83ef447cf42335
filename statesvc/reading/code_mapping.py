"""Code mappings: an operator's rows that override the normalizer from the next claim on.

A claim returns the newest revision, and a worker asks for the rows above its own. The revision that
read a message is appended to its normalizer's version (`1+m7`), so every reading can be explained.
Among the rows of a type and code the narrowest match wins: reason and text, reason, text, any.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import class_row

from events.carriers.carrier import Carrier
from events.clear_part import known_texts
from events.crypto.keyring import Keyring
from events.event import Event, Raw
from events.identity.ids import text_digest
from events.parsing.meanings import Meaning
from events.vocabulary import Kind, Reason, Status
from statesvc.database.queries import queries
from statesvc.log.actions import record_action
from statesvc.reading.mapped_code import MappedCode, PrintedCode, open_text, seal_text

_SQL = queries("statesvc.reading", "code_mapping")
COUNT_MAX: Final = 200_000
"""Events that are read at most."""
EXAMPLES_MAX: Final = 5

Code = tuple[str, str | None, str | None]
"""(carrier_id, type, code) as they stand in clear in the log; None: the carrier prints none."""
Narrowed = tuple[str | None, str | None]
"""(reason, digest of the text); None: any."""
MappingColumns = tuple[
    int, str, str | None, str | None, str | None, str | None, str | None, str | None, str | None
]
_ANY: Final[Narrowed] = (None, None)


class MappingChangedError(RuntimeError):
    """Another row of the code was added since the revision that the caller knows."""

    def __init__(self, revision: int) -> None:
        super().__init__(
            f"revision {revision} was added meanwhile"
            if revision
            else "no row of the code is there"
        )
        self.revision = revision


class NotMappedError(LookupError):
    """The code has no mapping in effect."""


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
            self._put(MappedCode(carrier_id, raw_type, raw_code, raw_reason, raw_text), meaning)

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

    def _put(self, code: MappedCode, meaning: Meaning | None) -> None:
        key, narrowed = (
            (code.carrier_id, code.raw_type, code.raw_code),
            (code.raw_reason, code.raw_text),
        )
        if meaning is not None:
            self.table.setdefault(key, {})[narrowed] = meaning
            return
        rows = self.table.get(key, {})
        rows.pop(narrowed, None)
        if not rows:
            self.table.pop(key, None)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeMapping:
    """A row. `kind` None: from here on the normalizer's own meaning applies."""

    revision: int
    carrier_id: str
    raw_type: str | None
    raw_code: str | None
    raw_reason: str | None
    raw_text: str | None
    kind: str | None
    status: str | None
    reason: str | None
    added_at: datetime
    added_by: str
    why: str

    @property
    def code(self) -> MappedCode:
        return MappedCode(
            self.carrier_id, self.raw_type, self.raw_code, self.raw_reason, self.raw_text
        )

    @property
    def meaning(self) -> Meaning | None:
        return meaning_of_row(self.kind, self.status, self.reason)


async def current_mappings(
    connection: AsyncConnection[Any], *, carrier_id: str | None = None
) -> list[CodeMapping]:
    """Return the latest row of each code, of a single carrier or of all."""
    cursor = connection.cursor(row_factory=class_row(CodeMapping))
    await cursor.execute(_SQL["current_mappings"], {"carrier_id": carrier_id})
    return await cursor.fetchall()


async def mapping_history(connection: AsyncConnection[Any], code: MappedCode) -> list[CodeMapping]:
    """Return all rows of a code, the latest first."""
    cursor = connection.cursor(row_factory=class_row(CodeMapping))
    await cursor.execute(_SQL["mapping_history"], code._asdict())
    return await cursor.fetchall()


async def find_mapping(connection: AsyncConnection[Any], revision: int) -> CodeMapping | None:
    cursor = connection.cursor(row_factory=class_row(CodeMapping))
    await cursor.execute(_SQL["mapping"], {"revision": revision})
    return await cursor.fetchone()


async def add_mapping(
    connection: AsyncConnection[Any],
    code: MappedCode,
    meaning: Meaning | None,
    *,
    why: str,
    actor: str,
    replaces: int | None = None,
) -> int:
    """Map a code (`meaning` None: no longer); return the revision.

    An operator action, in effect at the next claim. `replaces`: the latest revision of the code
    that the caller knows, 0 for none; raises MappingChangedError where there is a later
    revision. Raises ValueError for an open text: apply `PrintedCode.clear` first, so that the
    text is not stored.
    """
    if not code.is_clear:
        raise ValueError("a text is mapped by what stands for it")
    kind = meaning.kind.value if meaning else None
    status = meaning.status.value if meaning and meaning.status else None
    reason = meaning.reason.value if meaning and meaning.reason else None
    async with connection.transaction():
        await connection.execute(_SQL["lock_mappings"])
        if replaces is not None:
            latest = await latest_revision(connection, code)
            if latest != replaces:
                raise MappingChangedError(latest)
        said = {"kind": kind, "status": status, "reason": reason}
        cursor = await connection.execute(
            _SQL["add_mapping"], {**code._asdict(), **said, "added_by": actor, "why": why}
        )
        row = await cursor.fetchone()
        assert row is not None  # noqa: S101 - an aggregate has one row
        revision: int = row[0]
        about = {
            "type": code.raw_type,
            "code": code.raw_code,
            "carrier_reason": code.raw_reason,
            "text": code.raw_text,
        }
        await record_action(
            connection,
            actor=actor,
            verb="map_code" if meaning else "unmap_code",
            target=f"carrier {code.carrier_id}",
            details={
                "why": why,
                "revision": revision,
                **{name: value for name, value in {**about, **said}.items() if value is not None},
            },
        )
    return revision


async def latest_revision(connection: AsyncConnection[Any], code: MappedCode) -> int:
    """Return the latest revision of a code; 0: it never had a row."""
    rows = await mapping_history(connection, code)
    return rows[0].revision if rows else 0


async def teach(
    connection: AsyncConnection[Any],
    keyring: Keyring,
    printed: PrintedCode,
    meaning: Meaning | None,
    *,
    why: str,
    actor: str,
    replaces: int | None = None,
) -> int:
    """Add a mapping of a code as it is printed.

    Its texts are stored sealed for as long as a mapping in effect names them.

    Raises NotMappedError where a mapping is to be taken back and none is in effect.
    """
    digest = keyring.carrier_digest(printed.carrier_id)
    code = printed.clear(digest)
    async with connection.transaction():
        await connection.execute(_SQL["lock_mappings"])
        if meaning is None:
            rows = await mapping_history(connection, code)
            if not rows or rows[0].kind is None:
                raise NotMappedError
        revision = await add_mapping(
            connection, code, meaning, why=why, actor=actor, replaces=replaces
        )
        if meaning is None:
            await connection.execute(
                _SQL["forget_texts"], {"carrier_id": code.carrier_id, "stand_ins": code.stand_ins}
            )
        else:
            for stands, text in printed.texts(digest).items():
                sealed = seal_text(keyring, code.carrier_id, stands, text)
                await connection.execute(
                    _SQL["store_text"],
                    {"carrier_id": code.carrier_id, "stand_in": stands, "sealed": sealed},
                    binary=True,
                )
    return revision


async def mapped_texts(
    connection: AsyncConnection[Any], keyring: Keyring, carrier: Carrier
) -> Mapping[str, str]:
    """Return the texts of a carrier's mapped codes and of its tables, by their stand-ins.

    Personal, if an operator mapped such a text.
    """
    carrier_id = carrier.carrier_id
    cursor = await connection.execute(_SQL["mapped_texts"], {"carrier_id": carrier_id}, binary=True)
    taught = {
        stands: open_text(keyring, carrier_id, stands, sealed)
        for stands, sealed in await cursor.fetchall()
    }
    return known_texts(carrier.texts, carrier_id, keyring.carrier_digest(carrier_id)) | taught


@dataclass(frozen=True, slots=True, kw_only=True)
class ByCategory:
    carrier_id: str
    raw_type: str | None
    raw_code: str | None
    events: int
    shipments: int
    since: datetime
    message_ids: list[UUID]


async def codes_by_category(connection: AsyncConnection[Any]) -> list[ByCategory]:
    """Return the codes that no row maps, the most frequent first."""
    cursor = connection.cursor(row_factory=class_row(ByCategory))
    await cursor.execute(
        _SQL["by_category"], {"count_max": COUNT_MAX, "examples_max": EXAMPLES_MAX}
    )
    return await cursor.fetchall()
