"""`GET /v1/shipments...`: status, history and audit trail of a shipment."""

from collections.abc import Mapping
from typing import Any, Final

from aiohttp import hdrs
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from events.entry.kinds import NO_PREVIOUS
from events.identity.recipes import discriminator_of, number_of
from statesvc.api import kit
from statesvc.api import shipment_words as words
from statesvc.api.computing import AUDIT, COMPUTING_SECONDS, AuditRequest, PrintedAudit, Sources
from statesvc.api.parameters import (
    AuditParameters,
    HistoryParameters,
    ShipmentIdParameters,
    ShipmentParameters,
    StateParameters,
)
from statesvc.api.shipment_pages import Resumed, find_asked, foreign_cursor, next_cursor, resume
from statesvc.log.history import History, take_snapshot
from statesvc.shipments.as_of import Horizon, horizon_at
from statesvc.shipments.audit_trail import read_audit_trail, read_observations
from statesvc.shipments.awaited import awaited_number_at
from statesvc.shipments.find import (
    FoundShipment,
    find_shipment,
    listed,
    number_of_shipment,
    other_of_number,
    other_sources,
    signed_by,
)
from statesvc.shipments.models import AsOf, Audit, HistoryPage, SameParcel, Shipment, Signed, Signer
from statesvc.shipments.personal import KnownTexts
from statesvc.shipments.references import AttachedTo, awaited_numbers
from statesvc.shipments.timeline import timeline

# A shipment with more events is audited in a process of its own.
LONG_AUDIT_EVENTS: Final = 200
_KNOWN: Final = {
    str(hdrs.IF_NONE_MATCH): kit.RequestHeader(
        "The `ETag` of the answer that the caller has: 304 without a body where it still holds."
    )
}
_TAGGED: Final[Mapping[str, str]] = {
    hdrs.ETAG: "Of the last event and of the whole answer.",
}
_ONE: Final = "/v1/shipments/{carrier_id}/{tracking_number}"
_STATUSES: Final[Mapping[int, str]] = {
    kit.OK: "the current state",
    kit.NOT_MODIFIED: "it has not changed",
}
_UNKNOWN: Final = (kit.Code.NOT_FOUND, kit.Code.UNKNOWN_CARRIER, kit.Code.LOG_UNAVAILABLE)


@kit.operation(
    "GET /v1/shipments/{shipment_id}",
    scope="read",
    tag="shipments",
    request_headers=_KNOWN,
    response_headers=_TAGGED,
    statuses=_STATUSES,
    problems=(kit.Code.NOT_FOUND, kit.Code.LOG_UNAVAILABLE),
)
async def get_shipment_by_id(
    context: kit.Context, call: kit.Call[ShipmentIdParameters, None]
) -> kit.RawAnswer[Shipment]:
    """Show a shipment by its id.

    The answer is that of the call by number; its `carrier_id`, `tracking_number` and
    `discriminator` lead to the other calls.


    """
    wanted = call.parameters

    async with context.pool.connection() as connection:
        number = await number_of_shipment(connection, wanted.shipment_id)
        if number is None:
            raise kit.Problem(kit.Code.NOT_FOUND, "no event belongs to a shipment of this id")
        by_number = ShipmentParameters(
            carrier_id=number.carrier_id,
            tracking_number=number.number,
            discriminator=number.discriminator,
            as_of=wanted.as_of,
            include=wanted.include,
        )
        return await _state(context, call, connection, context.log_archive(), by_number)


@kit.operation(
    f"GET {_ONE}",
    scope="read",
    tag="shipments",
    request_headers=_KNOWN,
    response_headers=_TAGGED,
    statuses=_STATUSES,
    problems=_UNKNOWN,
    view=kit.Details(
        "shipment_id",
        "carrier_id",
        kit.Column("tracking_number", "Number"),
        "discriminator",
        "status",
        "reason",
        kit.Column("status_since", "Since"),
        "delivered_at",
        "estimated_delivery",
        "service",
        "attempts",
        "flags",
        kit.Column("last_event_at", "Last event"),
        "version",
        kit.Column(words.others, "Others of this number"),
    ),
    commands=(
        kit.Command(
            name="shipments show",
            summary="show a parcel's current state",
            fields=("discriminator", "as_of"),
        ),
    ),
)
async def get_shipment(
    context: kit.Context, call: kit.Call[StateParameters, None]
) -> kit.RawAnswer[Shipment]:
    """Show the current status of a shipment.

    A number that was used twice answers with the latest shipment; `others` lists the rest. A
    number with references but without an event yet is `unknown`, with version 0. Takes
    `If-None-Match`.
    """
    wanted = call.parameters

    async with context.pool.connection() as connection:
        return await _state(context, call, connection, context.log_archive(), wanted)


@kit.operation(
    f"GET {_ONE}/history",
    scope="read",
    tag="shipments",
    problems=(*_UNKNOWN, kit.Code.INVALID_CURSOR),
    view=(
        kit.Table(
            "version",
            kit.Column("occurred_at", "Occurred"),
            kit.Column(words.happened, "Status"),
            "reason",
            kit.Column("carrier_code", "Code"),
            kit.Column(words.where, "Place"),
            kit.Column("recorded_at", "Recorded"),
        ),
        kit.Sentences(words.observed),
    ),
    commands=(
        kit.Command(
            name="shipments history",
            summary="show a parcel's history",
            fields=("discriminator", "as_of"),
            is_rows=True,
        ),
    ),
)
async def get_shipment_history(
    context: kit.Context, call: kit.Call[HistoryParameters, None]
) -> HistoryPage:
    """Show the history of a shipment.

    Its events in timeline order, whatever order they came in.
    """
    wanted = call.parameters
    resumed = resume(wanted, "history")
    personal = kit.reads_personal(call, wanted.include)
    keyring = await context.keyring() if personal else await context.keyring_if_any()

    async with context.pool.connection() as connection:
        await _bring_back(connection, context.log_archive(), wanted)
        found, horizon = await find_asked(connection, wanted, resumed)
        opener = found.shipment.opener(keyring) if personal and keyring is not None else None
        page = await timeline(
            connection, found.shipment, after=resumed.after, limit=wanted.limit, opener=opener
        )
        if page is None:
            raise foreign_cursor()
        observations = []
        if resumed.after is None:
            observations = await read_observations(connection, found.shipment, horizon=horizon)
        if opener is not None:
            await context.readings.record_shipment(connection, call, found.shipment, name="history")
        cursor = next_cursor(wanted, "history", found, page.next_after, horizon)
        if keyring is not None:
            texts = KnownTexts(keyring)
            for event in page.events:
                event["carrier_code"] = texts.spelled_out(
                    event["carrier_id"], event["carrier_code"]
                )
        return {
            "items": page.events,
            "observations": observations,
            "next_cursor": cursor,
            **_as_of(horizon),
        }


@kit.operation(
    f"GET {_ONE}/audit",
    scope="audit",
    tag="shipments",
    problems=(*_UNKNOWN, kit.Code.INVALID_CURSOR, kit.Code.OVERLOADED),
    is_computed=True,
    deadline_seconds=COMPUTING_SECONDS,
)
async def get_shipment_audit(
    context: kit.Context, call: kit.Call[AuditParameters, None]
) -> kit.RawAnswer[Audit]:
    """Show everything on record about a shipment.

    The carrier's statements with the time we learned them, our conclusions, our notifications.
    A consistent snapshot.
    """
    wanted = AuditRequest(
        asked=call.parameters, personal=kit.reads_personal(call, call.parameters.include)
    )
    sources = Sources(
        pool=context.pool,
        keyring=await context.keyring(),
        folder=context.archive,
        archive=context.log_archive(),
        limits=context.limits,
    )
    async with context.pool.connection() as connection:
        await _bring_back(connection, sources.archive, wanted.asked)
        is_long = await _is_long(connection, wanted.asked)
        if not is_long:
            audit = await print_audit(connection, sources, wanted)
    if is_long:
        audit = await (await context.computing()).compute(AUDIT, wanted)
    if wanted.personal:
        async with context.pool.connection() as connection:
            await context.readings.record_shipment(connection, call, audit.shipment, name="audit")
    return kit.RawAnswer(audit.content)


async def _state(
    context: kit.Context,
    call: kit.Call[Any, None],
    connection: AsyncConnection[Any],
    archive: History,
    wanted: ShipmentParameters,
) -> kit.RawAnswer[Shipment]:
    personal = kit.reads_personal(call, wanted.include)
    await _bring_back(connection, archive, wanted)
    call.headers |= {hdrs.CACHE_CONTROL: "private, no-cache", hdrs.VARY: hdrs.AUTHORIZATION}
    try:
        found, horizon = await find_asked(connection, wanted, Resumed())
    except kit.Problem as problem:
        awaited = (
            await _awaited(connection, wanted, personal=personal)
            if problem.code is kit.Code.NOT_FOUND
            else None
        )
        if awaited is None:
            raise
        return kit.tagged(call, awaited, head_hash=NO_PREVIOUS)
    shipment = await _shipment(
        connection, found, horizon, keyring=await context.keyring() if personal else None
    )
    # the erasure state stands in the body; so do the others of the number and what the caller may
    # see
    answer = kit.tagged(call, shipment, head_hash=found.shipment.head_hash)
    if call.status != kit.NOT_MODIFIED and shipment.get("signed_by") is not None:
        await context.readings.record_shipment(connection, call, found.shipment, name="state")
    return answer


async def print_audit(
    connection: AsyncConnection[Any], sources: Sources, wanted: AuditRequest
) -> PrintedAudit:
    """Print everything on record, as a consistent snapshot. Raises Problem."""
    asked, keyring = wanted.asked, sources.keyring if wanted.personal else None
    resumed = resume(asked, "audit")
    async with connection.transaction():
        await take_snapshot(connection)
        found, horizon = await find_asked(connection, asked, resumed)
        state = await _shipment(connection, found, horizon, keyring=keyring)
        trail = await read_audit_trail(
            connection,
            found.shipment,
            after=resumed.after or 0,
            limit=sources.limits.audited_events,
            keyring=keyring,
            horizon=horizon,
        )
    texts = KnownTexts(sources.keyring)
    for said in (*trail.events, *trail.conflicts):
        said["carrier_code"] = texts.spelled_out(said["carrier_id"], said["carrier_code"])
    audit: Audit = {
        "shipment": state,
        "events": trail.events,
        "transitions": trail.transitions,
        "conflicts": trail.conflicts,
        "observations": trail.observations,
        "notifications": trail.notifications,
        "readings": trail.readings,
        "next_cursor": next_cursor(asked, "audit", found, trail.next_after, horizon),
    }
    return PrintedAudit(content=kit.printed(audit), shipment=found.shipment)


async def _is_long(connection: AsyncConnection[Any], asked: AuditParameters) -> bool:
    """Return whether another process should compute it."""
    number = number_of(asked.carrier_id, asked.tracking_number)
    discriminator = discriminator_of(asked.carrier_id, asked.discriminator)
    found = await find_shipment(
        connection, carrier_id=asked.carrier_id, number=number, discriminator=discriminator
    )
    return isinstance(found, FoundShipment) and found.shipment.version > LONG_AUDIT_EVENTS


async def _bring_back(
    connection: AsyncConnection[Any],
    archive: History,
    asked: ShipmentParameters | HistoryParameters | AuditParameters,
) -> None:
    await archive.restore_number(
        connection, asked.carrier_id, number_of(asked.carrier_id, asked.tracking_number)
    )


async def _shipment(
    connection: AsyncConnection[Any],
    found: FoundShipment,
    horizon: Horizon | None,
    *,
    keyring: Keyring | None,
) -> Shipment:
    """Return the state; with a keyring, with personal fields."""
    signer: Signer = {}
    if keyring is not None:
        signer = {"signed_by": await signed_by(connection, found.shipment, keyring)}
    signed: Signed = {"is_signed": found.shipment.signed_by_event_id is not None}
    others = [other_of_number(other) for other in found.others]
    sources = [] if horizon is not None else await other_sources(connection, found.shipment)
    same_parcel: SameParcel = {"same_parcel": sources} if sources else {}
    return {
        **listed(found.shipment),
        **_as_of(horizon),
        **signed,
        **signer,
        "others": others,
        **same_parcel,
    }


async def _awaited(
    connection: AsyncConnection[Any], asked: ShipmentParameters, *, personal: bool
) -> Shipment | None:
    """Return a number without any events yet, if it has references or is awaited.

    In the past: if it was awaited then.
    """
    if asked.discriminator:
        return None
    number, horizon = (
        AttachedTo(asked.carrier_id, number_of(asked.carrier_id, asked.tracking_number)),
        None,
    )
    if asked.as_of is None:
        found = await awaited_numbers(connection, [number])
    else:
        horizon = await horizon_at(connection, asked.as_of)
        at_the_time = await awaited_number_at(connection, number, horizon)
        found = [] if at_the_time is None else [at_the_time]
    if not found:
        return None
    signer: Signer = {"signed_by": None} if personal else {}
    unsigned: Signed = {}
    alone: SameParcel = {}
    return {**found[0].listed(), **_as_of(horizon), **unsigned, **signer, "others": [], **alone}


def _as_of(horizon: Horizon | None) -> AsOf:
    return {} if horizon is None else horizon.members


OPERATIONS: Final = (get_shipment_by_id, get_shipment, get_shipment_history, get_shipment_audit)
