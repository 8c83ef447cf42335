"""Report of kept promises by carrier, service, lane and month, and the late parcels.

The promise is the carrier's first estimate; a delivery before the midnight that ends that day, at
the place of delivery, keeps it (`projections.expectations.promised_until`). The report reads the
projection, so it follows from the log alone.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate
from typing import Annotated, Any, Final, Literal, NamedTuple, cast
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import class_row, dict_row
from pydantic import AwareDatetime, Field
from typing_extensions import TypedDict

from events.parsing.service_name import service_key
from statesvc.api import kit
from statesvc.api.parameters import Day
from statesvc.database.queries import queries

Dimension = Literal["carrier", "service", "lane", "month"]
DIMENSIONS: Final[tuple[Dimension, ...]] = ("carrier", "service", "lane", "month")
DAYS_DEFAULT: Final = 90
_SQL = queries("statesvc.addons.expectations", "promise_report")
Connection = AsyncConnection[Any]


class PromiseGroup(TypedDict):
    """Promises of one carrier, service, lane and month, or of all of a dimension that
    was not asked for (null).
    """

    carrier_id: str | None
    service: Annotated[
        str | None,
        Field(
            description="As it is named most often; case and blanks do not matter.",
            examples=["UPS Ground"],
        ),
    ]
    lane: Annotated[
        str | None,
        Field(description="Country of the first and of the last scan.", examples=["US-CA"]),
    ]
    month: Annotated[date | None, Field(description="Its first day; of the promised days.")]
    promised: Annotated[int, Field(description="All but those of cancelled shipments.")]
    on_time: int
    late: Annotated[int, Field(description="Delivered after the promised day.")]
    overdue: Annotated[int, Field(description="The day is over, and it is still on its way.")]
    not_delivered: Annotated[int, Field(description="Sent back, lost or destroyed.")]
    delivered_without_time: Annotated[
        int, Field(description="The carrier printed no time: nobody can say.")
    ]
    open: Annotated[int, Field(description="The day is not over.")]
    on_time_share: Annotated[
        float | None, Field(description="Of those on time, late and overdue; null: there are none.")
    ]
    delay_days_p50: Annotated[
        int | None,
        Field(description="Days after the promised one, of those delivered; below 0: before it."),
    ]
    delay_days_p90: int | None
    delay_days_p99: int | None
    delay_days: Annotated[
        dict[str, int], Field(description="How many were delivered after each number of days.")
    ]


class LateParcel(TypedDict):
    """A shipment that was not delivered by the end of the promised day."""

    shipment_id: UUID
    carrier_id: str
    tracking_number: str
    discriminator: str
    service: str | None
    lane: str | None
    status: str
    promised_for: date
    promised_until: Annotated[
        AwareDatetime,
        Field(description="The midnight that ended the day, where it was delivered or seen last."),
    ]
    delivered_at: Annotated[AwareDatetime | None, Field(description="Null: not yet, or never.")]
    days_late: Annotated[int, Field(description="Until today where it was not delivered.")]


class PromisePosition(NamedTuple):
    """A place in the list of late parcels: after this parcel."""

    promised_until: datetime
    shipment_id: UUID


FROM_THE_START: Final = PromisePosition(datetime(1, 1, 1, tzinfo=UTC), UUID(int=0))


class PromiseFilter(kit.ClosedModel):
    """Selection of promises."""

    since: Annotated[
        Day | None,
        kit.FieldFace(label="Promised from"),
        Field(
            description="Promised for this day or later; left out: the last 90 days and those to come."
        ),
    ] = None
    until: Annotated[
        Day | None,
        kit.FieldFace(label="Promised before"),
        Field(description="Promised for a day before this one."),
    ] = None
    carrier_id: Annotated[kit.Name | None, Field(description="Of this carrier only.")] = None
    service: Annotated[
        kit.Name | None,
        Field(description="Of this service only, as the carrier names it; case does not matter."),
    ] = None
    lane: Annotated[
        str | None,
        Field(
            pattern=r"^[A-Z]{2}-[A-Z]{2}$", description="Country of the first and of the last scan."
        ),
    ] = None


class _Count(NamedTuple):
    """Count of promises. None: not asked for, or not known."""

    carrier_id: str | None
    service: str | None
    lane: str | None
    month: date | None
    outcome: str
    delay_days: int | None
    shipments: int


async def promise_groups(
    connection: Connection, wanted: PromiseFilter, by: Sequence[Dimension]
) -> list[PromiseGroup]:
    cursor = connection.cursor(row_factory=class_row(_Count))
    asked = {f"by_{each}": each in by for each in DIMENSIONS}
    await cursor.execute(_SQL["promise_counts"], await _parameters(connection, wanted) | asked)
    return grouped(await cursor.fetchall())


def grouped(counts: Iterable[_Count]) -> list[PromiseGroup]:
    """Group by carrier, service, lane and month; spellings of a service count together."""
    groups: dict[tuple[str | None, str | None, str | None, date | None], list[_Count]] = (
        defaultdict(list)
    )
    for each in counts:
        groups[each.carrier_id, service_key(each.service), each.lane, each.month].append(each)
    return [_group(groups[key]) for key in sorted(groups, key=lambda key: tuple(map(str, key)))]


def _group(counts: Sequence[_Count]) -> PromiseGroup:
    outcomes: Counter[str] = Counter()
    delays: Counter[int] = Counter()
    services: Counter[str | None] = Counter()
    for each in counts:
        outcomes[each.outcome] += each.shipments
        services[each.service] += each.shipments
        if each.delay_days is not None:
            delays[each.delay_days] += each.shipments
    judged = outcomes["on_time"] + outcomes["late"] + outcomes["overdue"]
    return PromiseGroup(
        carrier_id=counts[0].carrier_id,
        service=max(services, key=lambda name: (services[name], name or "")),
        lane=counts[0].lane,
        month=counts[0].month,
        promised=outcomes.total(),
        on_time=outcomes["on_time"],
        late=outcomes["late"],
        overdue=outcomes["overdue"],
        not_delivered=outcomes["not_delivered"],
        delivered_without_time=outcomes["delivered_without_time"],
        open=outcomes["open"],
        on_time_share=round(outcomes["on_time"] / judged, 4) if judged else None,
        delay_days_p50=percentile(delays, 50),
        delay_days_p90=percentile(delays, 90),
        delay_days_p99=percentile(delays, 99),
        delay_days={str(days): delays[days] for days in sorted(delays)},
    )


def percentile(counted: Counter[int], percent: int) -> int | None:
    """Return the smallest value that at least `percent` of all are not above; None: there are
    none.
    """
    values = sorted(counted)
    reached = accumulate(counted[value] for value in values)
    return next(
        (
            value
            for value, so_far in zip(values, reached, strict=True)
            if so_far * 100 >= counted.total() * percent
        ),
        None,
    )


async def late_parcels(
    connection: Connection,
    wanted: PromiseFilter,
    *,
    after: PromisePosition = FROM_THE_START,
    limit: int,
) -> list[LateParcel]:
    """Return the parcels that are late against their promise, the earliest promise first."""
    cursor = connection.cursor(row_factory=dict_row)
    position = {
        "after_promised_until": after.promised_until,
        "after_shipment_id": after.shipment_id,
    }
    await cursor.execute(
        _SQL["late_parcels"], {**await _parameters(connection, wanted), **position, "limit": limit}
    )
    return cast("list[LateParcel]", await cursor.fetchall())


async def _parameters(connection: Connection, wanted: PromiseFilter) -> dict[str, Any]:
    row = await (await connection.execute(_SQL["now"])).fetchone()
    assert row is not None  # noqa: S101 - a SELECT without FROM has one row
    now: datetime = row[0]
    return {
        "now": now,
        "since": wanted.since or now.astimezone(UTC).date() - timedelta(days=DAYS_DEFAULT),
        "until": wanted.until or date(9999, 1, 1),
        "carrier_id": wanted.carrier_id,
        "service": wanted.service,
        "lane": wanted.lane,
    }
