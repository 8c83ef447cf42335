"""Shipments listed: all of them, or those that bear a number or a part of one, under a filter; page by
page in the order of their last change. And many numbers looked up in one statement.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

import orjson
from psycopg import AsyncConnection
from psycopg.rows import dict_row

from events.carriers import CARRIERS
from events.crypto.keyring import Keyring
from events.identity.recipes import number_of, recipe_of
from events.spelling import normalize_number, sought_forms
from events.vocabulary import Status
from projections.lifecycle import TERMINAL
from statesvc.database.queries import Columns, encoded, ints, queries, texts
from statesvc.log.json_compression import decompress_json
from statesvc.shipments.find import OTHERS_MAX, StoredShipment, listed, stored_shipment
from statesvc.shipments.models import DetailedShipment, EventLocation, ListedShipment
from statesvc.shipments.personal import HIDDEN
from statesvc.shipments.references import AttachedTo, AwaitedNumber, awaited_numbers, order_ids
from statesvc.shipments.timeline import event_location

_SQL = queries("statesvc.shipments", "shipment_list")
_POSITION: Final = itemgetter(0)
END_OF_TIME: Final = datetime(9999, 12, 31, tzinfo=UTC)


class ListPosition(NamedTuple):
    """A place in the list of shipments: after this shipment."""

    recorded_at: datetime
    shipment_id: UUID


AFTER_ALL: Final = UUID(int=2**128 - 1)
BEGINNING_OF_TIME: Final = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShipmentFilter:
    """Filter of shipments, and their order. None: any.

    `numbers`: as compared. `since`: changed after it; `before`: unchanged since then.
    `attached_to`: numbers with references. `is_open`: only shipments that expect a further
    scan. `newest_first`: by last change, backwards.
    """

    carrier_id: str | None = None
    status: str | None = None
    reason: str | None = None
    service: str | None = None
    flag: str | None = None
    statuses: Sequence[str] | None = None
    numbers: Sequence[str] | None = None
    attached_to: Sequence[AttachedTo] | None = None
    since: datetime = BEGINNING_OF_TIME
    before: datetime = END_OF_TIME
    is_open: bool = False
    newest_first: bool = False

    @property
    def beginning(self) -> ListPosition:
        return ListPosition(END_OF_TIME if self.newest_first else self.since, AFTER_ALL)

    def follows(self, position: ListPosition, after: ListPosition) -> bool:
        """Return whether a position comes after another in this order, within the bounds of
        time.
        """
        is_later = position < after if self.newest_first else position > after
        return is_later and self.since < position.recorded_at < self.before


# A carrier for each way of comparing numbers.
_SPELLINGS: Final = tuple(
    {recipe_of(carrier_id).ignored_in_number: carrier_id for carrier_id in CARRIERS}.values()
)


def numbers_in_any_spelling(printed: str) -> list[str]:
    """Return a tracking number as each carrier compares it: most of them alike."""
    forms = sought_forms(printed)
    return sorted({number_of(carrier_id, form) for carrier_id in _SPELLINGS for form in forms})


async def unchanged_since(connection: AsyncConnection[Any], duration: timedelta) -> datetime:
    """Return the instant `duration` ago, by the database's clock."""
    row = await (
        await connection.execute(_SQL["unchanged_since"], {"duration": duration})
    ).fetchone()
    assert row is not None  # noqa: S101 - one row, always
    since: datetime = row[0]
    return since


async def list_shipments(
    connection: AsyncConnection[Any],
    wanted: ShipmentFilter,
    *,
    after: ListPosition,
    limit: int,
    scan_max: int,
) -> tuple[list[StoredShipment], ListPosition | None]:
    """Return a page in the order of the last change, and the next position (None: the last page).

    A filter that fits few shipments may give a short or empty page that is not the last: each
    page reads at most `scan_max` shipments.
    """
    parameters = {
        "carrier_id": wanted.carrier_id,
        "status": wanted.status,
        "reason": wanted.reason,
        "service": wanted.service,
        "flag": wanted.flag,
        "statuses": None if wanted.statuses is None else list(wanted.statuses),
        **_wanted_numbers(wanted),
        "since": wanted.since,
        "before": wanted.before,
        "newest": wanted.newest_first,
        # two ranges of one index: a status that ends shipments lies in the one, any other in the
        # other
        "open": wanted.status not in TERMINAL,
        "ended": not wanted.is_open and (wanted.status is None or wanted.status in TERMINAL),
        "after_recorded_at": after.recorded_at,
        "after_shipment_id": after.shipment_id,
        "scan_max": scan_max,
        "limit": limit + 1,
    }
    is_of_numbers = wanted.numbers is not None or wanted.attached_to is not None
    page, scan_end = (
        ("list_newest_shipments", "newest_scan_end")
        if wanted.newest_first
        else ("list_shipments", "scan_end")
    )
    cursor = connection.cursor(binary=True, row_factory=dict_row)
    await cursor.execute(_SQL["list_shipments_of_numbers" if is_of_numbers else page], parameters)
    rows = [stored_shipment(row) for row in await cursor.fetchall()]
    # one more than the page was read, only to know of the next page
    if len(rows) > limit:
        last = rows[limit - 1]
        return rows[:limit], ListPosition(last.recorded_at, last.shipment_id)
    # by number all shipments are read: there is no end of a scan to go on from
    if is_of_numbers:
        return rows, None
    end = await (await connection.execute(_SQL[scan_end], parameters, binary=True)).fetchone()
    return rows, None if end is None else ListPosition(*end)


async def list_with_awaited(
    connection: AsyncConnection[Any],
    wanted: ShipmentFilter,
    *,
    after: ListPosition,
    limit: int,
    scan_max: int,
    details_by: Keyring | None = None,
) -> tuple[list[DetailedShipment], ListPosition | None]:
    """Return a page that includes numbers with references but no statement.

    `details_by`: with the details of each; it opens them.
    """
    found, end = await list_shipments(
        connection, wanted, after=after, limit=limit, scan_max=scan_max
    )
    lines = [(ListPosition(each.recorded_at, each.shipment_id), listed(each)) for each in found]
    if (
        wanted.attached_to is not None
        and wanted.status in {None, Status.UNKNOWN}
        and (wanted.reason, wanted.service) == (None, None)
    ):
        numbers = [
            AttachedTo(*each) for each in zip(*_wanted_numbers(wanted).values(), strict=True)
        ]
        awaited = [
            each.listed()
            for each in await awaited_numbers(connection, numbers)
            if wanted.carrier_id in {None, each.carrier_id}
        ]
        places = [
            (ListPosition(each["recorded_at"], each["shipment_id"]), each) for each in awaited
        ]
        # sorted in here: the query does not know of numbers without a shipment
        lines += [line for line in places if wanted.follows(line[0], after)]
        lines.sort(key=_POSITION, reverse=wanted.newest_first)
        if len(lines) > limit:
            end = lines[limit - 1][0]
    shown = [line for _, line in lines[:limit]]
    if details_by is None:
        # what `details` adds is left out
        return cast("list[DetailedShipment]", shown), end
    return await with_details(connection, details_by, shown, found), end


def _wanted_numbers(wanted: ShipmentFilter) -> dict[str, Any]:
    numbers = wanted.numbers or ()
    sought: Sequence[tuple[str | None, str]] = [(wanted.carrier_id, each) for each in numbers]
    if wanted.attached_to is not None:
        sought = [
            each for each in wanted.attached_to if wanted.numbers is None or each.number in numbers
        ]
    return {
        "carrier_ids": [carrier_id for carrier_id, _ in sought],
        "numbers": [number for _, number in sought],
    }


async def with_details(
    connection: AsyncConnection[Any],
    keyring: Keyring,
    lines: Sequence[ListedShipment],
    found: Sequence[StoredShipment],
) -> list[DetailedShipment]:
    """Add the last place and the shipper's order to each line, by a statement each."""
    places = await _last_locations(connection, found)
    numbers = [
        AttachedTo(line["carrier_id"], number_of(line["carrier_id"], line["tracking_number"]))
        for line in lines
    ]
    orders = await order_ids(connection, keyring, numbers)
    return [
        {**line, "last_location": places.get(line["shipment_id"]), "order_id": orders.get(number)}
        for line, number in zip(lines, numbers, strict=True)
    ]


async def _last_locations(
    connection: AsyncConnection[Any], shipments: Sequence[StoredShipment]
) -> dict[UUID, EventLocation]:
    scanned = [one for one in shipments if one.last_scan_id is not None]
    if not scanned:
        return {}
    asked = {
        "shipment_ids": [one.shipment_id for one in scanned],
        "event_ids": [one.last_scan_id for one in scanned],
        "sinces": [one.first_recorded_at for one in scanned],
        "untils": [one.recorded_at for one in scanned],
        "since": min(one.first_recorded_at for one in scanned),
        "until": max(one.recorded_at for one in scanned),
    }
    # planned each time: the bounds leave out most months
    cursor = await connection.execute(_SQL["last_scans"], asked, prepare=False)
    return {
        shipment_id: event_location(orjson.loads(decompress_json(canonical)), HIDDEN)
        for shipment_id, canonical in await cursor.fetchall()
    }


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


_NUMBERS: Final[Columns] = {"places": ints, "numbers": texts, "carrier_ids": texts}


class PrintedNumber(NamedTuple):
    """A tracking number in any spelling; of any carrier where none is named."""

    tracking_number: str
    carrier_id: str | None

    def compared(self) -> Sequence[str]:
        # a number means another shipment at each carrier, and each compares it in its own way
        if self.carrier_id is None:
            return numbers_in_any_spelling(self.tracking_number)
        carrier_id = self.carrier_id
        return sorted({number_of(carrier_id, form) for form in sought_forms(self.tracking_number)})


async def look_up_numbers(
    connection: AsyncConnection[Any], asked: Sequence[PrintedNumber]
) -> list[list[ListedShipment]]:
    """Return the shipments of each number, the latest first, and numbers without statements."""
    cursor = connection.cursor(binary=True, row_factory=dict_row)
    await cursor.execute(_SQL["lookup"], lookup_parameters(asked))
    found: list[list[ListedShipment]] = [[] for _ in asked]
    for row in await cursor.fetchall():
        place = row.pop("place")
        # awaited or with references only: the shipment does not exist before its first statement
        if row["shipment_id"] is None:
            found[place].append(
                AwaitedNumber(
                    row["carrier_id"], row["tracking_number"], row["recorded_at"], row["terminal"]
                ).listed()
            )
        else:
            found[place].append(listed(stored_shipment(row)))
    return found


def lookup_parameters(asked: Sequence[PrintedNumber]) -> dict[str, Any]:
    rows = [
        (place, number, one.carrier_id)
        for place, one in enumerate(asked)
        for number in one.compared()
    ]
    return {**encoded(rows, _NUMBERS), "each": OTHERS_MAX}
