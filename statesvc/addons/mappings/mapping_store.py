"""Rows of mapped codes: appended by operators, the latest of a code holds, none is ever changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import class_row, dict_row

from events.carriers.carrier import Carrier
from events.clear_part import known_texts
from events.crypto.keyring import Keyring
from events.parsing.meanings import Meaning
from statesvc.addons.mappings.mapped_code import MappedCode, PrintedCode, open_text, seal_text
from statesvc.database.queries import queries
from statesvc.log.actions import record_action
from statesvc.reading.code_mapping import meaning_of_row

_SQL = queries("statesvc.addons.mappings", "mapping_store")
# Events that are read at most.
COUNT_MAX: Final = 200_000
EXAMPLES_MAX: Final = 5


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
    """Return the rows in effect, of a single carrier or of all."""
    cursor = connection.cursor(row_factory=class_row(CodeMapping))
    await cursor.execute(_SQL["current_mappings"], {"carrier_id": carrier_id})
    # the latest row of a code may take its mapping back
    return [row for row in await cursor.fetchall() if row.kind is not None]


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
        # before the look-up: of two that take the same mapping back, the second finds none
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


async def codes_by_category(connection: AsyncConnection[Any]) -> list[dict[str, Any]]:
    """Return the codes that no row maps, the most frequent first."""
    cursor = connection.cursor(row_factory=dict_row)
    await cursor.execute(
        _SQL["by_category"], {"count_max": COUNT_MAX, "examples_max": EXAMPLES_MAX}
    )
    return await cursor.fetchall()
