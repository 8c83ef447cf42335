"""`GET /v1/shipments...`: where a shipment is, how it got there, and what is on record about it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from aiohttp import hdrs, web
from psycopg import AsyncConnection

from events.carriers import CARRIERS
from events.crypto.keyring import Keyring
from events.entry import NO_PREVIOUS
from events.recipes import discriminator_of, number_of
from statesvc.api.computing import COMPUTING_SECONDS, AuditWanted, Computing, PrintedAudit, Sources
from statesvc.api.parameters import AuditParameters, HistoryParameters, ShipmentIdParameters, ShipmentParameters, StateParameters
from statesvc.api.personal_reads import PersonalReadings, reads_personal
from statesvc.api.replica_reads import STALENESS, StaleReads
from statesvc.database.pool import Connections
from statesvc.http.operation import Reply, RequestHeader, Route, answer, answer_unless_known, call_of, parameters, printed, route
from statesvc.http.paging import decode_cursor, encode_cursor
from statesvc.http.problem import NOT_MODIFIED, OK, Code, Problem
from statesvc.log.archive.log_archive import LogArchive
from statesvc.log.snapshot import take_snapshot
from statesvc.shipments.as_of import Horizon, find_shipment_at, horizon_at
from statesvc.shipments.audit_trail import EVENTS_MAX, read_audit_trail
from statesvc.shipments.awaited import was_never_heard
from statesvc.shipments.find import (
    FoundShipment,
    OtherDiscriminators,
    find_shipment,
    listed,
    number_of_shipment,
    other_of_number,
    other_sources,
    signed_by,
)
from statesvc.shipments.known_texts import KnownTexts
from statesvc.shipments.models import AsOf, Audit, HistoryPage, SameParcel, Shipment, Signer
from statesvc.shipments.observation_trail import read_observations
from statesvc.shipments.references import AttachedTo, AwaitedNumber, awaited_numbers
from statesvc.shipments.timeline import timeline

LONG_AUDIT_EVENTS: Final = 200
"""A shipment with more events is audited in a process of its own."""
_KNOWN: Final = {
    str(hdrs.IF_NONE_MATCH): RequestHeader("The `ETag` of the answer that the caller has: 304 without a body where it still holds.")
}
_TAGGED: Final[Mapping[str, str]] = {hdrs.ETAG: "Of the last event and of the whole answer.", **STALENESS}
_ONE: Final = "/v1/shipments/{carrier_id}/{tracking_number}"


@dataclass(frozen=True, slots=True)
class Shipments:
    """The handlers. Personal fields are opened on request, for callers with scope `pii` only."""

    pool: Connections
    sources: Sources
    computing: Computing
    readings: PersonalReadings
    reads: StaleReads

    @property
    def keyring(self) -> Keyring:
        """Opens personal fields."""
        return self.sources.keyring

    async def state(self, request: web.Request) -> Reply[Shipment]:
        """The current state; 304 where the caller has it already."""
        asked = parameters(request, StateParameters)

        async def read(connection: AsyncConnection[Any], archive: LogArchive) -> Reply[Shipment]:
            return await self._state(connection, archive, request, asked)

        return await self.reads.read(read, max_staleness=_bound(request, asked))

    async def state_by_id(self, request: web.Request) -> Reply[Shipment]:
        """The same, for who has its id: entries of the log name it."""
        wanted = parameters(request, ShipmentIdParameters)

        async def read(connection: AsyncConnection[Any], archive: LogArchive) -> Reply[Shipment]:
            number = await number_of_shipment(connection, wanted.shipment_id)
            if number is None:
                raise Problem(Code.NOT_FOUND, "no event belongs to a shipment of this id")
            asked = ShipmentParameters(
                carrier_id=number.carrier_id,
                tracking_number=number.number,
                discriminator=number.discriminator,
                as_of=wanted.as_of,
                include=wanted.include,
            )
            return await self._state(connection, archive, request, asked)

        return await self.reads.read(read, max_staleness=_bound(request, wanted))

    async def _state(
        self, connection: AsyncConnection[Any], archive: LogArchive, request: web.Request, asked: ShipmentParameters
    ) -> Reply[Shipment]:
        personal = reads_personal(call_of(request), asked.include)
        await _bring_back(connection, archive, asked)
        headers: dict[str, str] = {hdrs.CACHE_CONTROL: "private, no-cache", hdrs.VARY: hdrs.AUTHORIZATION}
        try:
            found, horizon = await _find(connection, asked, _Resumed())
        except Problem as problem:
            awaited = await _awaited(connection, asked, personal=personal) if problem.code is Code.NOT_FOUND else None
            if awaited is None:
                raise
            return answer_unless_known(request, awaited, head_hash=NO_PREVIOUS, headers=headers)
        shipment = await _shipment(connection, found, horizon, keyring=self.keyring if personal else None)
        # the erasure state stands in the body; so do the others of the number and what the caller may see
        reply = answer_unless_known(request, shipment, head_hash=found.shipment.head_hash, headers=headers)
        if reply.status == OK and shipment.get("signed_by") is not None:
            await self.readings.record_shipment(connection, call_of(request), found.shipment, name="state")
        return reply

    async def history(self, request: web.Request) -> Reply[HistoryPage]:
        """A page of events in timeline order."""
        asked = parameters(request, HistoryParameters)
        resumed = _resume(asked, "history")
        personal = reads_personal(call_of(request), asked.include)

        async def read(connection: AsyncConnection[Any], archive: LogArchive) -> Reply[HistoryPage]:
            await _bring_back(connection, archive, asked)
            found, horizon = await _find(connection, asked, resumed)
            opener = found.shipment.opener(self.keyring) if personal else None
            page = await timeline(connection, found.shipment, after=resumed.after, limit=asked.limit, opener=opener)
            if page is None:
                raise _foreign_cursor()
            observations = []
            if resumed.after is None:
                observations = await read_observations(connection, found.shipment, horizon=horizon)
            if opener is not None:
                await self.readings.record_shipment(connection, call_of(request), found.shipment, name="history")
            cursor = _cursor(asked, "history", found, page.next_after, horizon)
            texts = KnownTexts(self.keyring)
            for event in page.events:
                event["carrier_code"] = texts.spelled_out(event["carrier_id"], event["carrier_code"])
            return answer({"items": page.events, "observations": observations, "next_cursor": cursor, **_as_of(horizon)})

        return await self.reads.read(read, max_staleness=_bound(request, asked))

    async def audit(self, request: web.Request) -> Reply[Audit]:
        """Everything on record, as one consistent snapshot."""
        wanted = AuditWanted(
            asked=(asked := parameters(request, AuditParameters)), personal=reads_personal(call_of(request), asked.include)
        )
        async with self.pool.connection() as connection:
            await _bring_back(connection, self.sources.archive, asked)
            is_long = await _is_long(connection, asked)
            if not is_long:
                printed = await print_audit(connection, self.sources, wanted)
        if is_long:
            printed = await self.computing.audit(wanted)
        if wanted.personal:
            async with self.pool.connection() as connection:
                await self.readings.record_shipment(connection, call_of(request), printed.shipment, name="audit")
        return Reply(body=printed.content, content_type="application/json")


async def print_audit(connection: AsyncConnection[Any], sources: Sources, wanted: AuditWanted) -> PrintedAudit:
    """Everything on record, as one consistent snapshot, printed. Raises Problem."""
    asked, keyring = wanted.asked, sources.keyring if wanted.personal else None
    resumed = _resume(asked, "audit")
    async with connection.transaction():
        await take_snapshot(connection)
        found, horizon = await _find(connection, asked, resumed)
        state = await _shipment(connection, found, horizon, keyring=keyring)
        trail = await read_audit_trail(
            connection, found.shipment, after=resumed.after or 0, limit=EVENTS_MAX, keyring=keyring, horizon=horizon
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
        "next_cursor": _cursor(asked, "audit", found, trail.next_after, horizon),
    }
    return PrintedAudit(content=printed(audit), shipment=found.shipment)


def _bound(request: web.Request, asked: StateParameters | ShipmentIdParameters | HistoryParameters) -> float | None:
    """How old the answer may be. Personal fields are the primary's: who reads them is recorded, and an erasure holds at once."""
    if asked.max_staleness is not None and reads_personal(call_of(request), asked.include):
        return 0
    return asked.max_staleness


async def _is_long(connection: AsyncConnection[Any], asked: AuditParameters) -> bool:
    """Whether it is better computed elsewhere."""
    number = number_of(asked.carrier_id, asked.tracking_number)
    discriminator = discriminator_of(asked.carrier_id, asked.discriminator)
    found = await find_shipment(connection, carrier_id=asked.carrier_id, number=number, discriminator=discriminator)
    return isinstance(found, FoundShipment) and found.shipment.version > LONG_AUDIT_EVENTS


async def _bring_back(
    connection: AsyncConnection[Any], archive: LogArchive, asked: ShipmentParameters | HistoryParameters | AuditParameters
) -> None:
    await archive.bring_back_number(connection, asked.carrier_id, number_of(asked.carrier_id, asked.tracking_number))


async def _shipment(
    connection: AsyncConnection[Any], found: FoundShipment, horizon: Horizon | None, *, keyring: Keyring | None
) -> Shipment:
    """The state; with a keyring, with personal fields."""
    signer: Signer = {}
    if keyring is not None:
        signer = {"signed_by": await signed_by(connection, found.shipment, keyring)}
    others = [other_of_number(other) for other in found.others]
    sources = [] if horizon is not None else await other_sources(connection, found.shipment)
    same_parcel: SameParcel = {"same_parcel": sources} if sources else {}
    return {**listed(found.shipment), **_as_of(horizon), **signer, "others": others, **same_parcel}


async def _awaited(connection: AsyncConnection[Any], asked: ShipmentParameters, *, personal: bool) -> Shipment | None:
    """Of a number of which nothing was said yet, if references are attached to it or it is awaited; in the past if that was observed."""
    if asked.discriminator:
        return None
    number, horizon = AttachedTo(asked.carrier_id, number_of(asked.carrier_id, asked.tracking_number)), None
    if asked.as_of is None:
        found = await awaited_numbers(connection, [number])
    else:
        horizon = await horizon_at(connection, asked.as_of)
        found = [AwaitedNumber(*number, horizon.at, never_heard=True)] if await was_never_heard(connection, number, horizon) else []
    if not found:
        return None
    signer: Signer = {"signed_by": None} if personal else {}
    alone: SameParcel = {}
    return {**found[0].listed(), **_as_of(horizon), **signer, "others": [], **alone}


def _as_of(horizon: Horizon | None) -> AsOf:
    return {} if horizon is None else horizon.members


@dataclass(frozen=True, slots=True)
class _Resumed:
    """Where a cursor goes on: a number may get another shipment between two pages, and the log more entries."""

    shipment_id: UUID | None = None
    after: int | None = None
    horizon: Horizon | None = None


async def _find(
    connection: AsyncConnection[Any], asked: ShipmentParameters | HistoryParameters, resumed: _Resumed
) -> tuple[FoundShipment, Horizon | None]:
    wanted: dict[str, Any] = {
        "carrier_id": asked.carrier_id,
        "number": number_of(asked.carrier_id, asked.tracking_number),
        "discriminator": discriminator_of(asked.carrier_id, asked.discriminator),
        "shipment_id": resumed.shipment_id,
    }
    horizon = None
    if asked.as_of is None:
        found = await find_shipment(connection, **wanted)
    else:
        horizon = resumed.horizon or await horizon_at(connection, asked.as_of)
        found = await find_shipment_at(connection, horizon, **wanted)
    match found:
        case FoundShipment() if resumed.shipment_id is not None and found.shipment.shipment_id != resumed.shipment_id:
            raise _foreign_cursor()
        case FoundShipment():
            return found, horizon
        case OtherDiscriminators(count):
            raise Problem(Code.NOT_FOUND, f"the number is known {count} times, never with this discriminator; ask without it to see them")
        case None if asked.carrier_id not in CARRIERS:
            raise Problem(Code.UNKNOWN_CARRIER, "no such carrier_id; `statesvc carriers` lists them")
        case None if horizon is not None:
            raise Problem(
                Code.NOT_FOUND,
                f"no event of carrier {asked.carrier_id} that named this tracking number was sealed by {horizon.at.isoformat()}",
            )
        case None:
            raise Problem(Code.NOT_FOUND, f"no event of carrier {asked.carrier_id} named this tracking number")


def _binding(asked: HistoryParameters | AuditParameters, what: str) -> dict[str, Any]:
    return {
        "list": what,
        "carrier_id": asked.carrier_id,
        "number": number_of(asked.carrier_id, asked.tracking_number),
        "discriminator": discriminator_of(asked.carrier_id, asked.discriminator),
        "as_of": asked.as_of,
    }


def _resume(asked: HistoryParameters | AuditParameters, what: str) -> _Resumed:
    if asked.cursor is None:
        return _Resumed()
    try:
        shipment_id, after, *horizon = decode_cursor(asked.cursor, _binding(asked, what), fields=2 if asked.as_of is None else 5)
        if not horizon:
            return _Resumed(UUID(shipment_id), int(after))
        size, at, clamped = horizon
        return _Resumed(UUID(shipment_id), int(after), Horizon(int(size), datetime.fromisoformat(at), bool(clamped)))
    except (AttributeError, TypeError, ValueError):
        raise _foreign_cursor() from None


def _cursor(
    asked: HistoryParameters | AuditParameters, what: str, found: FoundShipment, after: int | None, horizon: Horizon | None
) -> str | None:
    if after is None:
        return None
    seen: list[str | int] = [] if horizon is None else [horizon.size, horizon.at.isoformat(), int(horizon.clamped)]
    return encode_cursor([str(found.shipment.shipment_id), after, *seen], _binding(asked, what))


def _foreign_cursor() -> Problem:
    return Problem(Code.INVALID_CURSOR, "the cursor names nothing that is here; start again without one")


def routes(pool: Connections, sources: Sources, computing: Computing, readings: PersonalReadings, reads: StaleReads) -> Sequence[Route]:
    """The calls about shipments. `computing`: where a long audit is made."""
    shipments = Shipments(pool, sources, computing, readings, reads)
    unknown = (Code.NOT_FOUND, Code.UNKNOWN_CARRIER, Code.LOG_UNAVAILABLE)
    return [
        route(
            "GET /v1/shipments/{shipment_id}",
            shipments.state_by_id,
            operation_id="get_shipment_by_id",
            summary="Where a shipment is, by its id",
            description="As by its number; `carrier_id`, `tracking_number` and `discriminator` of the answer lead to its other calls.",
            scope="read",
            tag="shipments",
            parameters=ShipmentIdParameters,
            request_headers=_KNOWN,
            response_headers=_TAGGED,
            response=Shipment,
            statuses={OK: "the current state", NOT_MODIFIED: "it has not changed"},
            problems=(Code.NOT_FOUND, Code.LOG_UNAVAILABLE),
        ),
        route(
            f"GET {_ONE}",
            shipments.state,
            operation_id="get_shipment",
            summary="Where a shipment is",
            description="A number that was used twice answers with the latest shipment; `others` lists the rest. A number that references "
            "are attached to and of which nothing was said yet is `unknown`, with version 0. Takes `If-None-Match`.",
            scope="read",
            tag="shipments",
            parameters=StateParameters,
            request_headers=_KNOWN,
            response_headers=_TAGGED,
            response=Shipment,
            statuses={OK: "the current state", NOT_MODIFIED: "it has not changed"},
            problems=unknown,
        ),
        route(
            f"GET {_ONE}/history",
            shipments.history,
            operation_id="get_shipment_history",
            summary="How a shipment got there",
            description="Its events in timeline order, whatever order they came in.",
            scope="read",
            tag="shipments",
            parameters=HistoryParameters,
            response_headers=STALENESS,
            response=HistoryPage,
            problems=(*unknown, Code.INVALID_CURSOR),
        ),
        route(
            f"GET {_ONE}/audit",
            shipments.audit,
            operation_id="get_shipment_audit",
            summary="What is on record about a shipment",
            description="What the carrier said and when we knew it, what we concluded, what we sent. One consistent snapshot.",
            scope="audit",
            tag="shipments",
            parameters=AuditParameters,
            response=Audit,
            problems=(*unknown, Code.INVALID_CURSOR, Code.OVERLOADED),
            is_computed=True,
            deadline_seconds=COMPUTING_SECONDS,
        ),
    ]
