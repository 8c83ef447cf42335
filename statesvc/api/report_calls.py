"""`GET /v1/reports/promises...`: how carriers met what they promised, the parcels that were late, and both as files."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from aiohttp import hdrs, web
from pydantic import Field
from typing_extensions import TypedDict

from events.carriers import CARRIERS
from statesvc.api.parameters import Day, Name
from statesvc.api.report_files import MEDIA_TYPES, ParquetUnavailableError, ReportFormat, as_file
from statesvc.database.pool import Connections
from statesvc.http.closed_model import ClosedModel
from statesvc.http.operation import Reply, Route, answer, parameters, raw_route, route
from statesvc.http.paging import LIMIT_DEFAULT, LIMIT_MAX, Page, decode_cursor, encode_cursor
from statesvc.http.problem import Code, Problem
from statesvc.shipments.promise_report import (
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

LATE_MAX: Final = 100_000
"""Rows of a file; more are asked for in several ranges of days."""
_LONG_SECONDS: Final = 30.0
_TAG: Final = "reports"
_PATH: Final = "/v1/reports/promises"
_BY_ANY: Final = "|".join(DIMENSIONS)


class PromiseParameters(ClosedModel):
    """Which promises."""

    since: Annotated[Day | None, Field(description="Promised for this day or later; left out: the last 90 days and those to come.")] = None
    until: Annotated[Day | None, Field(description="Promised for a day before this one.")] = None
    carrier_id: Annotated[Name | None, Field(description="Of this carrier only.")] = None
    service: Annotated[Name | None, Field(description="Of this service only, as the carrier names it; case does not matter.")] = None
    lane: Annotated[str | None, Field(pattern=r"^[A-Z]{2}-[A-Z]{2}$", description="Country of the first and of the last scan.")] = None

    @property
    def wanted(self) -> PromiseFilter:
        """As the report takes it. Raises Problem."""
        if self.carrier_id is not None and self.carrier_id not in CARRIERS:
            raise Problem(Code.UNKNOWN_CARRIER, "no such carrier_id; `statesvc carriers` lists them")
        return PromiseFilter(since=self.since, until=self.until, carrier_id=self.carrier_id, service=self.service, lane=self.lane)


class PromiseReportParameters(PromiseParameters):
    """Which promises, and how they are counted."""

    by: Annotated[
        str,
        Field(
            pattern=rf"^({_BY_ANY})(,({_BY_ANY})){{0,3}}$",
            description="What they are counted by: any of `carrier`, `service`, `lane`, `month`, joined by commas.",
        ),
    ] = ",".join(DIMENSIONS)

    @property
    def dimensions(self) -> list[Dimension]:
        """In the order of the contract."""
        return [each for each in DIMENSIONS if each in self.by.split(",")]


class LateParameters(PromiseParameters):
    """A page of late parcels."""

    limit: Annotated[int, Field(ge=1, le=LIMIT_MAX, description="Items per page.")] = LIMIT_DEFAULT
    cursor: Annotated[str | None, Field(max_length=1024, description="`next_cursor` of the page before.")] = None


class PromiseExportParameters(PromiseReportParameters):
    """Which table, in which form."""

    table: Annotated[Literal["groups", "late"], Field(description="The counts, or the late parcels.")] = "groups"
    format: ReportFormat = "csv"


class PromiseReport(TypedDict):
    """How carriers met what they promised."""

    groups: list[PromiseGroup]


@dataclass(frozen=True, slots=True)
class ReportCalls:
    """The handlers."""

    pool: Connections

    async def promises(self, request: web.Request) -> Reply[PromiseReport]:
        """The counts."""
        asked = parameters(request, PromiseReportParameters)
        async with self.pool.connection() as connection:
            return answer({"groups": await promise_groups(connection, asked.wanted, asked.dimensions)})

    async def late(self, request: web.Request) -> Reply[Page[LateParcel]]:
        """A page of late parcels, the earliest promise first."""
        asked = parameters(request, LateParameters)
        bound_to = {"list": "late", **asked.model_dump(mode="json", exclude={"limit", "cursor"})}
        after = FROM_THE_START if asked.cursor is None else _position(asked.cursor, bound_to)
        async with self.pool.connection() as connection:
            found = await late_parcels(connection, asked.wanted, after=after, limit=asked.limit + 1)
        page = found[: asked.limit]
        is_last = len(found) <= asked.limit
        cursor = None if is_last else encode_cursor([page[-1]["promised_until"].isoformat(), str(page[-1]["shipment_id"])], bound_to)
        return answer(Page(page, cursor))

    async def export(self, request: web.Request) -> web.StreamResponse:
        """One of them as a file."""
        asked = parameters(request, PromiseExportParameters)
        rows: Sequence[Any]
        async with self.pool.connection() as connection:
            if asked.table == "groups":
                rows = await promise_groups(connection, asked.wanted, asked.dimensions)
                columns = [*PromiseGroup.__annotations__]
            else:
                rows = await late_parcels(connection, asked.wanted, limit=LATE_MAX + 1)
                columns = [*LateParcel.__annotations__]
        if len(rows) > LATE_MAX:
            raise Problem(Code.INVALID_REQUEST, f"there are more than {LATE_MAX:,} rows: narrow `since`, `until` or `carrier_id`")
        try:
            content = as_file(rows, columns, asked.format)
        except ParquetUnavailableError as error:
            raise Problem(Code.INVALID_REQUEST, str(error)) from error
        headers = {hdrs.CONTENT_DISPOSITION: f'attachment; filename="promises-{asked.table}.{asked.format}"'}
        return web.Response(body=content, content_type=MEDIA_TYPES[asked.format], headers=headers)


def _position(cursor: str, bound_to: dict[str, Any]) -> PromisePosition:
    try:
        promised_until, shipment_id = decode_cursor(cursor, bound_to, fields=2)
        instant = datetime.fromisoformat(promised_until)
        if instant.tzinfo is not None:
            return PromisePosition(instant, UUID(shipment_id))
    except (AttributeError, TypeError, ValueError):
        pass
    raise Problem(Code.INVALID_CURSOR, "the cursor names nothing that is here; start again without one")


def routes(pool: Connections) -> Sequence[Route]:
    """The calls."""
    calls = ReportCalls(pool)
    return [
        route(
            f"GET {_PATH}",
            calls.promises,
            operation_id="report_promises",
            summary="How carriers met what they promised",
            description="The promise is the first estimate that the carrier gave; it is met by a delivery before the midnight that "
            "ends its day, where the parcel was delivered.",
            scope="read",
            tag=_TAG,
            parameters=PromiseReportParameters,
            response=PromiseReport,
            problems=(Code.UNKNOWN_CARRIER,),
            is_computed=True,
            deadline_seconds=_LONG_SECONDS,
        ),
        route(
            f"GET {_PATH}/late",
            calls.late,
            operation_id="list_late_parcels",
            summary="List parcels late against their promise",
            description="For claims: delivered after the promised day, or not delivered though it is over; the earliest promise first.",
            scope="read",
            tag=_TAG,
            parameters=LateParameters,
            response=Page[LateParcel],
            problems=(Code.UNKNOWN_CARRIER, Code.INVALID_CURSOR),
            is_computed=True,
            deadline_seconds=_LONG_SECONDS,
        ),
        raw_route(
            f"GET {_PATH}/export",
            calls.export,
            operation_id="export_promises",
            rules=(
                "The file would have more than 100,000 rows.",
                "Parquet takes the extra `archive` of the installation.",
            ),
            summary="Promises as CSV or Parquet",
            description="In CSV a text that a spreadsheet would compute has an apostrophe before it.",
            scope="read",
            tag=_TAG,
            parameters=PromiseExportParameters,
            response_types=tuple(MEDIA_TYPES.values()),
            problems=(Code.UNKNOWN_CARRIER,),
            is_computed=True,
            deadline_seconds=_LONG_SECONDS,
        ),
    ]
