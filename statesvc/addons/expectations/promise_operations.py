"""`GET /v1/reports/promises...`: promises met and missed, late parcels, and both as files."""

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from functools import partial
from typing import Annotated, Any, Final, Literal

import orjson
from aiohttp import hdrs
from pydantic import Field
from typing_extensions import TypedDict

from statesvc.addons.expectations.promise_report import (
    DIMENSIONS,
    FROM_THE_START,
    Dimension,
    LateParcel,
    PromiseFilter,
    PromiseGroup,
    PromisePosition,
    late_parcels,
    promise_groups,
)
from statesvc.api import kit

CSV: Final = "text/csv"
# A spreadsheet computes a cell that begins so; a carrier writes the numbers.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def as_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> bytes:
    """Format all rows, a column for each name; objects become JSON."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    writer.writerows([_cell(row[name]) for name in columns] for row in rows)
    return out.getvalue().encode()


def _cell(value: object) -> object:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    return orjson.dumps(value).decode() if isinstance(value, dict) else value


# Rows of a file; more are asked for in several ranges of days.
LATE_MAX: Final = 100_000
_PATH: Final = "/v1/reports/promises"
_BY_ANY: Final = "|".join(DIMENSIONS)


class PromiseReportParameters(PromiseFilter):
    """Selection of promises, and how they are counted."""

    by: Annotated[
        str,
        Field(
            pattern=rf"^({_BY_ANY})(,({_BY_ANY})){{0,3}}$",
            description=(
                "What they are counted by: any of `carrier`, `service`, `lane`, `month`, joined"
                " by commas."
            ),
        ),
    ] = ",".join(DIMENSIONS)

    @property
    def dimensions(self) -> list[Dimension]:
        """Dimensions in the order of the contract."""
        return [each for each in DIMENSIONS if each in self.by.split(",")]


class LateParameters(kit.PageParameters, PromiseFilter):
    """A page of late parcels."""


class PromiseExportParameters(PromiseReportParameters):
    """Table to export."""

    table: Annotated[
        Literal["groups", "late"], Field(description="The counts, or the late parcels.")
    ] = "groups"
    format: Literal["csv"] = "csv"


class PromiseReport(TypedDict):
    """Report of promises that carriers met and missed."""

    groups: list[PromiseGroup]


def _checked(context: kit.Context, wanted: PromiseFilter) -> PromiseFilter:
    """Return the selection. Raises Problem for an unknown carrier."""
    if wanted.carrier_id is not None:
        context.carrier(wanted.carrier_id)
    return wanted


_operation = partial(
    kit.operation, scope="read", tag="reports", is_computed=True, deadline_seconds=30.0
)


@_operation(f"GET {_PATH}", problems=(kit.Code.UNKNOWN_CARRIER,))
async def report_promises(
    context: kit.Context, call: kit.Call[PromiseReportParameters, None]
) -> PromiseReport:
    """Count the promises that carriers met.

    The promise is the first estimate that the carrier gave; it is met by a delivery before the
    midnight that ends its day, in local time of the place of delivery.
    """
    wanted = call.parameters
    async with context.pool.connection() as connection:
        return {
            "groups": await promise_groups(connection, _checked(context, wanted), wanted.dimensions)
        }


@_operation(f"GET {_PATH}/late", problems=(kit.Code.UNKNOWN_CARRIER, kit.Code.INVALID_CURSOR))
async def list_late_parcels(
    context: kit.Context, call: kit.Call[LateParameters, None]
) -> kit.Page[LateParcel]:
    """List parcels late against their promise.

    For claims: delivered after the promised day, or not delivered though it is over; the earliest
    promise first.
    """
    wanted = call.parameters
    bound_to = {"list": "late", **wanted.model_dump(mode="json", exclude={"limit", "cursor"})}
    after = (
        FROM_THE_START
        if wanted.cursor is None
        else kit.position_of(wanted.cursor, PromisePosition, bound_to)
    )
    async with context.pool.connection() as connection:
        found = await late_parcels(
            connection, _checked(context, wanted), after=after, limit=wanted.limit + 1
        )
    page = found[: wanted.limit]
    is_last = len(found) <= wanted.limit
    cursor = (
        None
        if is_last
        else kit.encode_position(
            PromisePosition(page[-1]["promised_until"], page[-1]["shipment_id"]), bound_to
        )
    )
    return kit.Page(page, cursor)


@_operation(
    f"GET {_PATH}/export",
    rules=("The file would have more than 100,000 rows.",),
    response_types=(CSV,),
    problems=(kit.Code.UNKNOWN_CARRIER,),
)
async def export_promises(
    context: kit.Context, call: kit.Call[PromiseExportParameters, None]
) -> kit.RawAnswer[None]:
    """Export promises as CSV.

    A text that a spreadsheet would compute has an apostrophe before it.
    """
    wanted = call.parameters
    rows: Sequence[Any]
    async with context.pool.connection() as connection:
        if wanted.table == "groups":
            rows = await promise_groups(connection, _checked(context, wanted), wanted.dimensions)
            columns = [*PromiseGroup.__annotations__]
        else:
            rows = await late_parcels(connection, _checked(context, wanted), limit=LATE_MAX + 1)
            columns = [*LateParcel.__annotations__]
    if len(rows) > LATE_MAX:
        raise kit.Problem(
            kit.Code.INVALID_REQUEST,
            f"there are more than {LATE_MAX:,} rows: narrow `since`, `until` or `carrier_id`",
        )
    call.headers[hdrs.CONTENT_DISPOSITION] = f'attachment; filename="promises-{wanted.table}.csv"'
    return kit.RawAnswer(as_csv(rows, columns), CSV)


OPERATIONS: Final = (report_promises, list_late_parcels, export_promises)
