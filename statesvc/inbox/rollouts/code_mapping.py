"""How a code is read whatever the normalizer says: rows that an operator added, in effect from the next claim on.

A claim says which revision is the newest, and a worker asks for the rows above the one that it knows. The revision that read a message
stands behind its normalizer's version (`1+m7`), so that every reading can be explained.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import class_row

from events.clear_part import Digest, looks_like_code, stand_in
from events.event import Event
from events.parsing.meanings import Meaning
from events.vocabulary import Kind, Reason, Status
from statesvc.database.queries import queries
from statesvc.log.actions import record_action

_SQL = queries("statesvc.inbox.rollouts", "code_mapping")
COUNT_MAX: Final = 200_000
"""Events that are read at most."""
EXAMPLES_MAX: Final = 5

Code = tuple[str, str | None, str | None]
"""(carrier_id, type, code) as they stand in clear in the log; None: the carrier prints none."""


@dataclass(slots=True)
class Mappings:
    """The rows as far as this process has read them; only ever moves forward."""

    revision: int = 0
    table: dict[Code, Meaning] = field(default_factory=dict)

    async def refresh(self, connection: AsyncConnection[Any]) -> None:
        """Takes in what came since. To be called between the claim and the reading."""
        cursor = await connection.execute(_SQL["mappings_since"], {"revision": self.revision})
        self.take(await cursor.fetchall())

    def take(self, rows: Iterable[tuple[int, str, str | None, str | None, str | None, str | None, str | None]]) -> None:
        """Rows in the order of their revision; those that are known already change nothing."""
        for revision, carrier_id, raw_type, raw_code, kind, status, reason in rows:
            if revision <= self.revision:
                continue
            self.revision = revision
            if kind is None:
                self.table.pop((carrier_id, raw_type, raw_code), None)
            else:
                meaning = Meaning(Kind(kind), Status(status) if status else None, Reason(reason) if reason else None)
                self.table[carrier_id, raw_type, raw_code] = meaning

    def read(self, events: tuple[Event, ...]) -> tuple[Event, ...]:
        """The same object where no row is about them."""
        if not self.table:
            return events
        mapped = tuple(map(self._read, events))
        return events if mapped == events else mapped

    def version(self, version: str) -> str:
        """How a normalizer's version is called where a row changed what it read."""
        return f"{version}+m{self.revision}"

    def _read(self, event: Event) -> Event:
        meaning = self.table.get((event.carrier_id, event.raw.type, event.raw.code))
        if meaning is None:
            return event
        return replace(event, kind=meaning.kind, status=meaning.status, reason=meaning.reason, by_category=False, corrects=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """One row. `kind` None: from here on the code is read as the normalizer says."""

    revision: int
    carrier_id: str
    raw_type: str | None
    raw_code: str | None
    kind: str | None
    status: str | None
    reason: str | None
    added_at: datetime
    added_by: str
    why: str


async def current_mappings(connection: AsyncConnection[Any]) -> list[Mapping]:
    """The latest row of each code."""
    cursor = connection.cursor(row_factory=class_row(Mapping))
    await cursor.execute(_SQL["current_mappings"])
    return await cursor.fetchall()


def is_text(code: Code) -> bool:
    """Whether type or code are texts rather than codes."""
    return not all(part is None or looks_like_code(part) for part in code[1:])


def clear_code(code: Code, digest: Digest) -> Code:
    """As it stands in clear."""
    carrier_id, raw_type, raw_code = code

    def clear(part: str | None) -> str | None:
        return part if part is None or looks_like_code(part) else stand_in(part, carrier_id, digest)

    return carrier_id, clear(raw_type), clear(raw_code)


async def add_mapping(connection: AsyncConnection[Any], code: Code, meaning: Meaning | None, *, why: str, actor: str) -> int:
    """Maps a code (`meaning` None: no longer); returns the revision. An operator action, in effect at the next claim.

    Raises ValueError for a text: it stays where it is written, so `clear_code` it first.
    """
    carrier_id, raw_type, raw_code = code
    if is_text(code):
        raise ValueError("a text is mapped by what stands for it")
    kind = meaning.kind.value if meaning else None
    status = meaning.status.value if meaning and meaning.status else None
    reason = meaning.reason.value if meaning and meaning.reason else None
    async with connection.transaction():
        await connection.execute(_SQL["lock_mappings"])
        cursor = await connection.execute(
            _SQL["add_mapping"],
            {
                "carrier_id": carrier_id,
                "raw_type": raw_type,
                "raw_code": raw_code,
                "kind": kind,
                "status": status,
                "reason": reason,
                "added_by": actor,
                "why": why,
            },
        )
        row = await cursor.fetchone()
        assert row is not None  # noqa: S101 - an aggregate has one row
        revision: int = row[0]
        stated = {"type": raw_type, "code": raw_code, "kind": kind, "status": status, "reason": reason}
        await record_action(
            connection,
            actor=actor,
            verb="map_code" if meaning else "unmap_code",
            target=f"carrier {carrier_id}",
            details={"why": why, "revision": revision, **{name: value for name, value in stated.items() if value is not None}},
        )
    return revision


@dataclass(frozen=True, slots=True, kw_only=True)
class ByCategory:
    """One such code."""

    carrier_id: str
    raw_type: str | None
    raw_code: str | None
    events: int
    shipments: int
    since: datetime
    message_ids: list[UUID]


async def codes_by_category(connection: AsyncConnection[Any]) -> list[ByCategory]:
    """Those that no row maps, the most frequent first."""
    cursor = connection.cursor(row_factory=class_row(ByCategory))
    await cursor.execute(_SQL["by_category"], {"count_max": COUNT_MAX, "examples_max": EXAMPLES_MAX})
    return await cursor.fetchall()
