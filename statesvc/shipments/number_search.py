"""Search of shipments by what customers read out: the beginning or the last characters of a number."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from events.spelling import normalize_number
from statesvc.database.queries import queries

_SQL = queries("statesvc.shipments", "number_search")

ANY_REST: Final = "*"
# Number of shipments that a search looks at before it asks for more characters.
MATCHES_MAX: Final = 1000
_END_INDEXED: Final = 15
_PLACES: Final = "`*` stands behind the beginning of one number, or before its last characters"
_AFTER_ALL_CHARACTERS: Final = "\U0010ffff"


class TooManyMatchesError(LookupError):
    """A part that very many numbers share finds none of them."""

    def __init__(self) -> None:
        super().__init__(
            f"more than {MATCHES_MAX:,} shipments match: give more characters of the number"
        )


class NumberPart(NamedTuple):
    """Beginning or end of numbers as they are compared."""

    characters: str
    is_end: bool


def number_part(printed: str) -> NumberPart | None:
    """Parse `1Z999*` or `*12345`; None for a whole number. Raises ValueError if it is too short."""
    if ANY_REST in printed[1:-1]:
        raise ValueError(_PLACES)
    if len(printed) > 1 and printed.startswith(ANY_REST):
        end = normalize_number(printed.removeprefix(ANY_REST))
        if len(end) < PART_CHARS_MIN:
            raise ValueError(
                f"after `*` at least the last {PART_CHARS_MIN} characters of the number are needed"
            )
        return NumberPart(end, is_end=True)
    if not printed.endswith(ANY_REST):
        return None
    beginning = normalize_number(printed.removesuffix(ANY_REST))
    if not beginning:
        raise ValueError(_PLACES)
    return NumberPart(beginning, is_end=False)


async def numbers_with(connection: AsyncConnection[Any], part: NumberPart) -> list[str]:
    """Return the numbers of shipments that begin or end so. Raises TooManyMatchesError."""
    # an end is found by the reversed number, of which the index has this many characters
    since = part.characters[: -_END_INDEXED - 1 : -1] if part.is_end else part.characters
    # a range, not LIKE: a prepared LIKE with a parameter uses no index
    asked = {"since": since, "until": since + _AFTER_ALL_CHARACTERS, "limit": MATCHES_MAX + 1}
    query = _SQL["numbers_ending" if part.is_end else "numbers_beginning"]
    rows = await (await connection.execute(query, asked)).fetchall()
    if len(rows) > MATCHES_MAX:
        raise TooManyMatchesError
    return sorted(
        # longer ends than the index has are compared here
        {number for (number,) in rows if not part.is_end or number.endswith(part.characters)}
    )


PART_CHARS_MIN: Final = 4


def likely_searches(sought: str) -> Iterator[Mapping[str, str]]:
    """Yield parameters of `list_shipments`, the likeliest first: a whole number, a shipper's
    reference, how a number ends or begins.
    """
    yield {"tracking_number": sought}
    if "*" not in sought:
        yield {"reference": sought}
        if sum(map(str.isalnum, sought)) >= PART_CHARS_MIN:
            yield {"tracking_number": f"*{sought}"}
            yield {"tracking_number": f"{sought}*"}
