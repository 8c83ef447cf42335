"""Dead letters: list, groups by cause, details with their history.

Causes and places, never values of a message.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import class_row
from pydantic import AwareDatetime, BaseModel, Field

from events.identity.ids import listed_prefix
from statesvc.database.queries import queries
from statesvc.http.closed_model import ClosedModel
from statesvc.repair.dead_letters.dead_letter import (
    CauseWord,
    DeadLetter,
    DeadLetterFilter,
    DeadLetterKind,
    Obstacle,
    RelatedDeadLetter,
    Way,
    way_of,
)
from statesvc.repair.dead_letters.put_back import ReplayVerdict, obstacle_of, verdicts

_SQL = queries("statesvc.repair.dead_letters", "dead_letters")

# Events that are read to count an unknown code.
OCCURRENCES_MAX: Final = 10_000
CODE_EXAMPLES_MAX: Final = 5
# Dead letters that are grouped, the oldest first.
GROUPED_MAX: Final = 100_000
GROUP_EXAMPLES_MAX: Final = 3
DETAILS_MAX: Final = 5
ATTEMPTS_MAX: Final = 100
RELATED_MAX: Final = 50
# Above the id of every dead letter.
NEWEST: Final = 2**63 - 1


class CodeOccurrences(ClosedModel):
    """Occurrences of an unknown code in the log."""

    events: int
    shipments: int
    counts_capped: Annotated[bool, Field(description="The counts are lower bounds.")]
    message_ids: Annotated[
        list[UUID], Field(description="Some messages with it, the latest first.")
    ]


class DeadLetterAttempt(ClosedModel):
    """An attempt. Of a message: those that did not settle it."""

    number: int
    worker: str | None
    started_at: AwareDatetime | None
    ended_at: AwareDatetime
    outcome: str
    error: Annotated[
        str | None, Field(description="A type, a status or an SQLSTATE; nothing of the message.")
    ]
    normalizer: str | None


class DeadLetterDetails(DeadLetter):
    """A dead letter with everything that is known about it."""

    way: Annotated[Way, Field(description="What a replay of it means.")]
    obstacle: Annotated[
        Obstacle | None,
        Field(description="What stands in the way of a replay, as far as is known beforehand."),
    ]
    became: Annotated[
        ReplayVerdict | None, Field(description="Of a replayed one: what came of it.")
    ]
    occurrences: Annotated[CodeOccurrences | None, Field(description="Of an unknown code.")]
    attempts_made: list[DeadLetterAttempt]
    related: Annotated[
        list[RelatedDeadLetter],
        Field(description="Earlier and later ones of the same message or notification."),
    ]


class GroupDetail(BaseModel):
    """Count of the dead letters of a group that have this detail."""

    detail: Annotated[str, Field(description="Of codes: type and code.")]
    dead_letters: int


class DeadLetterGroup(ClosedModel):
    """Open dead letters of the same kind, cause and carrier."""

    kind: DeadLetterKind
    cause: CauseWord
    carrier_id: str
    dead_letters: int
    oldest_at: AwareDatetime
    newest_at: AwareDatetime
    dead_letter_ids: Annotated[list[int], Field(description="Some of them, the newest first.")]
    details: Annotated[list[GroupDetail], Field(description="The most frequent first.")]
    way: Annotated[Way, Field(description="What a replay of them means.")]


class DeadLetterGroups(BaseModel):
    """The open dead letters by cause, the largest group first."""

    items: list[DeadLetterGroup]
    counts_capped: Annotated[
        bool, Field(description="There are more dead letters than were counted.")
    ]


async def list_dead_letters(
    connection: AsyncConnection[Any], wanted: DeadLetterFilter, *, before: int = NEWEST, limit: int
) -> tuple[list[DeadLetter], int | None]:
    """Return a page below the id `before`, newest first; and the `before` of the next, if any."""
    cursor = connection.cursor(row_factory=class_row(DeadLetter))
    await cursor.execute(
        _SQL["list_dead_letters"], {**wanted.parameters, "before": before, "limit": limit + 1}
    )
    found = await cursor.fetchall()
    return found[:limit], found[limit - 1].dead_letter_id if len(found) > limit else None


async def group_dead_letters(
    connection: AsyncConnection[Any], wanted: DeadLetterFilter
) -> DeadLetterGroups:
    """Return the open dead letters by cause: the page that on-call reads first."""
    bounds = {
        "count_max": GROUPED_MAX,
        "examples_max": GROUP_EXAMPLES_MAX,
        "details_max": DETAILS_MAX,
    }
    cursor = await connection.execute(_SQL["groups"], {**wanted.parameters, **bounds})
    columns = [column.name for column in cursor.description or ()]
    rows = [dict(zip(columns, row, strict=True)) for row in await cursor.fetchall()]
    groups = [DeadLetterGroup(**row, way=way_of(row["kind"], row["cause"])) for row in rows]
    return DeadLetterGroups(
        items=groups, counts_capped=sum(group.dead_letters for group in groups) >= GROUPED_MAX
    )


async def find_dead_letter(
    connection: AsyncConnection[Any], dead_letter_id: int
) -> DeadLetter | None:
    cursor = connection.cursor(row_factory=class_row(DeadLetter))
    await cursor.execute(_SQL["dead_letter"], {"dead_letter_id": dead_letter_id})
    return await cursor.fetchone()


async def describe_dead_letter(
    connection: AsyncConnection[Any], dead_letter_id: int
) -> DeadLetterDetails | None:
    found = await find_dead_letter(connection, dead_letter_id)
    if found is None:
        return None
    way = way_of(found.kind, found.cause)
    became = None
    if found.resolution == "replayed" and way in {Way.PUT_BACK, Way.SEND_AGAIN}:
        became = (await verdicts(connection, [dead_letter_id])).get(dead_letter_id)
    return DeadLetterDetails(
        **dict(found),
        way=way,
        obstacle=await obstacle_of(connection, dead_letter_id),
        became=became,
        occurrences=(await occurrences_of(connection, [found])).get(dead_letter_id),
        attempts_made=await _attempts(connection, found, way),
        related=await _related(connection, found),
    )


async def occurrences_of(
    connection: AsyncConnection[Any], dead_letters: Sequence[DeadLetter]
) -> Mapping[int, CodeOccurrences]:
    """Return the occurrences of unknown codes by the ids of their dead letters.

    How often each came, on how many shipments, and in which messages lately.
    """
    codes = [each for each in dead_letters if each.kind == "code"]
    if not codes:
        return {}
    cursor = await connection.execute(
        _SQL["code_occurrences"],
        {
            "dead_letter_ids": [each.dead_letter_id for each in codes],
            "carrier_ids": [each.carrier_id for each in codes],
            "carrier_codes": [listed_prefix(each.raw_type, each.raw_code) for each in codes],
            "raw_types": [each.raw_type for each in codes],
            "raw_codes": [each.raw_code for each in codes],
            "count_max": OCCURRENCES_MAX,
            "examples_max": CODE_EXAMPLES_MAX,
        },
    )
    return {
        dead_letter_id: CodeOccurrences(
            events=events, shipments=shipments, counts_capped=counts_capped, message_ids=message_ids
        )
        for dead_letter_id, events, shipments, counts_capped, message_ids in await cursor.fetchall()
    }


async def _attempts(
    connection: AsyncConnection[Any], dead_letter: DeadLetter, way: Way
) -> list[DeadLetterAttempt]:
    cursor = connection.cursor(row_factory=class_row(DeadLetterAttempt))
    match way:
        case Way.PUT_BACK:
            await cursor.execute(
                _SQL["attempts_at_message"],
                {"message_id": dead_letter.message_id, "limit": ATTEMPTS_MAX},
            )
        case Way.SEND_AGAIN:
            await cursor.execute(
                _SQL["attempts_at_notification"],
                {"dead_letter_id": dead_letter.dead_letter_id, "limit": ATTEMPTS_MAX},
            )
        case Way.READ_AGAIN | Way.READ_CODE:
            return []
    return await cursor.fetchall()


async def _related(
    connection: AsyncConnection[Any], dead_letter: DeadLetter
) -> list[RelatedDeadLetter]:
    # a code's is of many messages, and names only the first of them
    if dead_letter.kind == "code":
        return []
    cursor = connection.cursor(row_factory=class_row(RelatedDeadLetter))
    asked = {
        "dead_letter_id": dead_letter.dead_letter_id,
        "message_id": dead_letter.message_id,
        "webhook_id": dead_letter.webhook_id,
        "limit": RELATED_MAX,
    }
    return await (await cursor.execute(_SQL["related"], asked)).fetchall()
