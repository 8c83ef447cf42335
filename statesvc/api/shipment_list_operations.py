"""`GET /v1/shipments`: find shipments by number, reference, state and silence."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal, NamedTuple
from uuid import UUID

from psycopg import AsyncConnection
from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from events.crypto.keyring import Keyring
from events.identity.recipes import number_of
from events.spelling import sought_forms
from events.vocabulary import Reason, Status
from projections.expectations import Expectation
from projections.lifecycle import Flag
from statesvc.api import kit
from statesvc.api import shipment_words as words
from statesvc.api.parameters import MaxStaleness
from statesvc.http.preferences import Vocabulary
from statesvc.shipments.models import DetailedShipment
from statesvc.shipments.references import (
    AttachedTo,
    ReferenceText,
    ReferenceTooCommonError,
    numbers_of_reference,
)
from statesvc.shipments.shipment_list import (
    BEGINNING_OF_TIME,
    END_OF_TIME,
    ListPosition,
    ShipmentFilter,
    TooManyMatchesError,
    likely_searches,
    list_with_awaited,
    number_part,
    numbers_in_any_spelling,
    numbers_with,
    unchanged_since,
)

STALLED_DAYS_MAX: Final = 3650
NUMBERS_MAX: Final = 50
_FLAGS: Final = (*Flag, *Expectation)
# Statuses that ask for attention.
_TROUBLED: Final = (
    Status.EXCEPTION,
    Status.DELIVERY_ATTEMPTED,
    Status.RETURNING,
    Status.LOST,
    Status.DESTROYED,
)


def _duration(value: object) -> object:
    """Refuse a number, which pydantic would take as seconds."""
    if isinstance(value, str) and value.strip().isdecimal():
        raise PydanticCustomError("duration", "should be a duration, such as P3D or PT36H")
    return value


class ListParameters(kit.PageParameters):
    """Shipments to list, and which of them come first."""

    tracking_number: Annotated[
        kit.Name | None,
        Field(
            description=(
                "Only those that bear this number, whichever carrier's, or one of these, separated"
                " by commas; case, blanks and hyphens do not matter. `1Z999*`: those that begin so;"
                " `*12345`: those that end so, at least 4 characters."
            )
        ),
    ] = None
    reference: Annotated[
        ReferenceText | None,
        Field(
            description=(
                "Only those of a number that a shipper attached this to, as order id or in the"
                " metadata; case does not matter. A number of which nothing was said yet is there"
                " with version 0."
            )
        ),
    ] = None
    carrier_id: Annotated[kit.Name | None, Field(description="Only those of this carrier.")] = None
    status: Annotated[Status | None, Field(description="Only those with this status.")] = None
    reason: Annotated[
        Reason | None, Field(description="Only those with this reason of their status.")
    ] = None
    flag: Annotated[
        kit.Name | None,
        Vocabulary(lambda: _FLAGS),
        Field(
            description=(
                "Only those that are marked so, such as `contradicted`, `stalled`, `overdue`."
            )
        ),
    ] = None
    in_trouble: Annotated[
        bool,
        Field(
            description=(
                "Only those whose status asks for attention: exception, delivery attempted,"
                " returning, lost, destroyed."
            )
        ),
    ] = False
    service: Annotated[
        kit.Name | None,
        Field(
            description="Only those of this service, as the carrier names it; case does not matter."
        ),
    ] = None
    updated_after: Annotated[
        kit.Instant | None,
        Field(description="Only those that changed after this time (RFC 3339 with offset)."),
    ] = None
    updated_before: Annotated[
        kit.Instant | None, Field(description="Only those that have not changed since this time.")
    ] = None
    stalled_for: Annotated[
        # the bounds stand inside: beside `| None` they would be keywords that JSON Schema lacks
        Annotated[timedelta, Field(gt=timedelta(0), le=timedelta(days=STALLED_DAYS_MAX))] | None,
        BeforeValidator(_duration),
        Field(
            description=(
                "Only those that are not at their end and of which nothing was heard for this long"
                " (ISO 8601: `P3D`, `PT36H`)."
            ),
        ),
    ] = None
    order: Annotated[
        Literal["oldest", "newest"],
        Field(
            description=(
                "Of the last change: the one that changed longest ago first, so that none is"
                " missed; or the newest first, where one that changes while you read the pages is"
                " not shown again."
            )
        ),
    ] = "oldest"
    details: Annotated[
        bool, Field(description="Each with `last_location` and `order_id`, too.")
    ] = False
    sought: Annotated[
        kit.Name | None,
        Field(
            description=(
                "A number, a reference, or how a number ends or begins, at least 4 characters:"
                " those of the first that has any. One page."
            )
        ),
        kit.FieldFace(metavar="text", help="`*12345`: numbers that end so; `1Z99*`: that begin so"),
    ] = None
    max_staleness: MaxStaleness = None


@kit.operation(
    "GET /v1/shipments",
    scope="read",
    tag="shipments",
    rules=(
        "The `reference` stands with more than 1,000 numbers.",
        (
            f"`tracking_number` has more than {NUMBERS_MAX} numbers, or `*` and less than 4"
            " characters."
        ),
    ),
    request_headers=kit.PREFER_TAKEN,
    response_headers=kit.PREFERENCE_APPLIED,
    problems=(kit.Code.INVALID_CURSOR, kit.Code.UNKNOWN_CARRIER, kit.Code.TOO_MANY),
    view=(
        kit.Table(
            "carrier_id",
            kit.Column("tracking_number", "Number"),
            "discriminator",
            "status",
            "reason",
            kit.Column("last_event_at", "Last event"),
            kit.Column("shipment_id", "Id", wide=True),
        ),
        kit.Sentences(words.none_found),
    ),
    commands=(
        kit.Command(
            name="shipments list",
            summary="list parcels, the last changed first",
            fields=(
                "carrier_id",
                "status",
                "reason",
                "service",
                "stalled_for",
                "updated_after",
                "updated_before",
                "limit",
                "cursor",
            ),
            fixed={"order": "newest"},
        ),
        kit.Command(
            name="shipments find",
            summary=("find parcels by number, its first or last characters, or a reference"),
            arguments=("sought",),
            fields=("reference",),
            fixed={"order": "newest", "limit": kit.LIMIT_MAX},
        ),
    ),
)
async def list_shipments(
    context: kit.Context, call: kit.Call[ListParameters, None]
) -> kit.Page[DetailedShipment]:
    """Find and list shipments.

    In the order of their last change: a shipment that changes while you read the pages comes
    again at the end, with its new state, and none is missed; `order=newest` begins with the
    newest change. Bounds of time stay as they were for the first page. A page may be short, or
    empty, and still have a `next_cursor`. A part of a number that more than 1,000 shipments
    share is `too_many`. Never holds personal fields.
    """
    wanted = call.parameters
    if wanted.sought is None:
        return await _page(context, wanted)
    for search in likely_searches(wanted.sought):
        try:
            page = await _page(context, wanted.model_copy(update=search))
        except kit.Problem as problem:
            if problem.code is not kit.Code.INVALID_REQUEST:
                raise
            continue
        if page.items:
            return kit.Page(page.items, None)
    return kit.Page([], None)


async def _page(context: kit.Context, wanted: ListParameters) -> kit.Page[DetailedShipment]:
    bound_to = wanted.model_dump(
        mode="json", exclude={"limit", "cursor", "details", "sought", "max_staleness"}
    )
    keyring = await context.keyring() if wanted.details or wanted.reference is not None else None

    async with context.pool.connection() as connection:
        position, before = (
            (None, await _before(connection, wanted))
            if wanted.cursor is None
            else kit.position_of(wanted.cursor, _Resumed, bound_to).split()
        )
        attached_to = None
        if wanted.reference is not None and keyring is not None:
            attached_to = await _attached_to(connection, keyring, wanted.reference)
        sought = ShipmentFilter(
            carrier_id=wanted.carrier_id,
            status=wanted.status,
            reason=wanted.reason,
            service=wanted.service,
            flag=wanted.flag,
            statuses=_TROUBLED if wanted.in_trouble else None,
            numbers=(
                None
                if wanted.tracking_number is None
                else await _numbers(connection, wanted.tracking_number, wanted.carrier_id)
            ),
            attached_to=attached_to,
            since=wanted.updated_after or BEGINNING_OF_TIME,
            before=before,
            is_open=wanted.stalled_for is not None,
            newest_first=wanted.order == "newest",
        )
        shipments, end = await list_with_awaited(
            connection,
            sought,
            after=position or sought.beginning,
            limit=wanted.limit,
            scan_max=context.limits.listed_shipments,
            details_by=keyring if wanted.details else None,
        )
        if not shipments:
            context.refuse_unknown(wanted.carrier_id)
        cursor = None
        if end is not None:
            cursor = kit.encode_position(_Resumed(*end, before), bound_to)
        return kit.Page(shipments, cursor)


class _Resumed(NamedTuple):
    """A place in the list, and the bound of time that all of its pages share."""

    recorded_at: datetime
    shipment_id: UUID
    before: datetime

    def split(self) -> tuple[ListPosition, datetime]:
        return ListPosition(self.recorded_at, self.shipment_id), self.before


async def _attached_to(
    connection: AsyncConnection[Any], keyring: Keyring, reference: str
) -> Sequence[AttachedTo]:
    try:
        return await numbers_of_reference(connection, keyring, reference)
    except ReferenceTooCommonError as error:
        raise kit.Problem(kit.Code.INVALID_REQUEST, str(error)) from None


async def _numbers(
    connection: AsyncConnection[Any], asked: str, carrier_id: str | None
) -> list[str]:
    """Return the numbers as they are compared.

    A text with a comma may also be a single number: `canonical` accepts any text.
    """
    try:
        part = number_part(asked)
        if part is not None:
            return await numbers_with(connection, part)
    except ValueError as error:
        raise kit.Problem(kit.Code.INVALID_REQUEST, f"`tracking_number`: {error}") from None
    except TooManyMatchesError as error:
        raise kit.Problem(kit.Code.TOO_MANY, str(error)) from None
    printed = (
        [asked, *(number for number in asked.split(",") if number.strip())]
        if "," in asked
        else [asked]
    )
    if len(printed) > NUMBERS_MAX + 1:
        raise kit.Problem(
            kit.Code.INVALID_REQUEST,
            f"`tracking_number` takes {NUMBERS_MAX} numbers at most, separated by commas",
        )
    if carrier_id is not None:
        return sorted(
            {number_of(carrier_id, form) for number in printed for form in sought_forms(number)}
        )
    return sorted({number for one in printed for number in numbers_in_any_spelling(one)})


async def _before(connection: AsyncConnection[Any], asked: ListParameters) -> datetime:
    """Return the same time bound for all pages: the cursor holds it."""
    before = asked.updated_before or END_OF_TIME
    return (
        before
        if asked.stalled_for is None
        else min(before, await unchanged_since(connection, asked.stalled_for))
    )


OPERATIONS: Final = (list_shipments,)
