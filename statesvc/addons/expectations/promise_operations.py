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
from statesvc.api.parameters import Day

ReportFormat = Literal["csv", "parquet"]
MEDIA_TYPES: Final[Mapping[str, str]] = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
}
# A spreadsheet computes a cell that begins so; a carrier writes the numbers.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")

_DATES: Final = frozenset({"month", "promised_for"})
_TEXTS: Final = frozenset(
    {
        "carrier_id",
        "service",
        "lane",
        "tracking_number",
        "discriminator",
        "shipment_id",
        "status",
        "delay_days",
    }
)


class ParquetUnavailableError(RuntimeError):
    """The extra `archive` is not installed."""


def as_file(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], file_format: ReportFormat
) -> bytes:
    """Format all rows, a column for each name; objects become JSON.

    Raises ParquetUnavailableError.
    """
    return _csv(rows, columns) if file_format == "csv" else _parquet(rows, columns)


def _csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> bytes:
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


def _parquet(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> bytes:
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        import pyarrow.parquet as pq  # noqa: PLC0415 - as above
    except ImportError as error:
        raise ParquetUnavailableError(
            "Parquet needs the extra: pip install 'statesvc[archive]'"
        ) from error
    table = pa.table(
        {
            name: pa.array([_plain(row[name]) for row in rows], _arrow_type(pa, name))
            for name in columns
        }
    )
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd")
    return out.getvalue()


def _arrow_type(pa: Any, name: str) -> Any:  # noqa: ANN401 - of a module that may be absent
    """Return the type by the column's name, so that an empty file has the types of a full file."""
    if name.endswith(("_at", "_until")):
        return pa.timestamp("us", tz="UTC")
    if name in _DATES:
        return pa.date32()
    if name == "on_time_share":
        return pa.float64()
    return pa.string() if name in _TEXTS else pa.int64()


def _plain(value: object) -> object:
    if isinstance(value, (str, int, float, date, datetime)) or value is None:
        return value
    return orjson.dumps(value).decode() if isinstance(value, dict) else str(value)


# Rows of a file; more are asked for in several ranges of days.
LATE_MAX: Final = 100_000
_PATH: Final = "/v1/reports/promises"
_BY_ANY: Final = "|".join(DIMENSIONS)


class PromiseParameters(kit.ClosedModel):
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

    def filter(self, context: kit.Context) -> PromiseFilter:
        """Return the selection as the report takes it. Raises Problem."""
        if self.carrier_id is not None:
            context.carrier(self.carrier_id)
        return PromiseFilter(
            since=self.since,
            until=self.until,
            carrier_id=self.carrier_id,
            service=self.service,
            lane=self.lane,
        )


class PromiseReportParameters(PromiseParameters):
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


class LateParameters(kit.PageParameters, PromiseParameters):
    """A page of late parcels."""


class PromiseExportParameters(PromiseReportParameters):
    """Table to export, and its format."""

    table: Annotated[
        Literal["groups", "late"], Field(description="The counts, or the late parcels.")
    ] = "groups"
    format: ReportFormat = "csv"


class PromiseReport(TypedDict):
    """Report of promises that carriers met and missed."""

    groups: list[PromiseGroup]


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
            "groups": await promise_groups(connection, wanted.filter(context), wanted.dimensions)
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
            connection, wanted.filter(context), after=after, limit=wanted.limit + 1
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
    rules=(
        "The file would have more than 100,000 rows.",
        "Parquet takes the extra `archive` of the installation.",
    ),
    response_types=tuple(MEDIA_TYPES.values()),
    problems=(kit.Code.UNKNOWN_CARRIER,),
)
async def export_promises(
    context: kit.Context, call: kit.Call[PromiseExportParameters, None]
) -> kit.RawAnswer[None]:
    """Export promises as CSV or Parquet.

    In CSV a text that a spreadsheet would compute has an apostrophe before it.
    """
    wanted = call.parameters
    rows: Sequence[Any]
    async with context.pool.connection() as connection:
        if wanted.table == "groups":
            rows = await promise_groups(connection, wanted.filter(context), wanted.dimensions)
            columns = [*PromiseGroup.__annotations__]
        else:
            rows = await late_parcels(connection, wanted.filter(context), limit=LATE_MAX + 1)
            columns = [*LateParcel.__annotations__]
    if len(rows) > LATE_MAX:
        raise kit.Problem(
            kit.Code.INVALID_REQUEST,
            f"there are more than {LATE_MAX:,} rows: narrow `since`, `until` or `carrier_id`",
        )
    try:
        content = as_file(rows, columns, wanted.format)
    except ParquetUnavailableError as error:
        raise kit.Problem(kit.Code.INVALID_REQUEST, str(error)) from error
    call.headers[hdrs.CONTENT_DISPOSITION] = (
        f'attachment; filename="promises-{wanted.table}.{wanted.format}"'
    )
    return kit.RawAnswer(content, MEDIA_TYPES[wanted.format])


OPERATIONS: Final = (report_promises, list_late_parcels, export_promises)
