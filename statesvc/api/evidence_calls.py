"""`/v1/shipments/{carrier_id}/{tracking_number}/evidence`: one document that is complete in itself, as JSON, HTML, PDF, or all in a zip."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final
from uuid import UUID

from aiohttp import hdrs, web
from pydantic import Field

from events.carriers import CARRIERS
from events.recipes import discriminator_of, number_of
from statesvc.api.computing import COMPUTING_SECONDS, Computing, EvidenceWanted, PrintedEvidence, Sources
from statesvc.api.parameters import AsOf, Discriminator, Name
from statesvc.api.personal_reads import Include, PersonalReadings, reads_personal
from statesvc.database.pool import Connections
from statesvc.evidence.bundle import FORMS, EvidencePart
from statesvc.evidence.gather import NothingSealedError, UnknownShipmentError, Wanted, gather
from statesvc.evidence.made_evidence import record_evidence
from statesvc.evidence.merchant_statement import MerchantStatement
from statesvc.http.api_keys import caller_of
from statesvc.http.closed_model import ClosedModel
from statesvc.http.key_store import Scope
from statesvc.http.operation import Route, body, call_of, parameters, raw_route
from statesvc.http.problem import Code, Problem
from statesvc.log.proofs import ContradictionError
from statesvc.log.snapshot import take_snapshot

_JSON: Final = FORMS[".json"]
_KINDS: Final = tuple(FORMS.values())
_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; sandbox"
)
"""The document has its style and its pictures in itself, and does nothing."""


class EvidenceParameters(ClosedModel):
    """One shipment."""

    carrier_id: Name
    tracking_number: Name
    discriminator: Discriminator = None
    as_of: AsOf = None
    include: Include = None
    part: Annotated[
        EvidencePart, Field(description="Of a PDF. The document has at most 18 pages; the annex has everything, of any length.")
    ] = "document"


async def print_evidence(sources: Sources, wanted: EvidenceWanted) -> PrintedEvidence:
    """Gathers, proves, seals and prints; what is made for a case is on record when this returns. Raises Problem."""
    from statesvc.evidence.evidence_forms import print_form  # noqa: PLC0415 - a process that only asks for evidence need not hold it

    asked = Wanted(
        carrier_id=wanted.carrier_id,
        number=wanted.number,
        discriminator=wanted.discriminator,
        keyring=sources.keyring,
        personal=wanted.personal,
        archive=sources.folder,
        as_of=wanted.as_of,
        statement=wanted.statement,
    )
    async with sources.pool.connection() as connection:
        await sources.archive.bring_back_number(connection, asked.carrier_id, asked.number)
        try:
            async with connection.transaction():
                await take_snapshot(connection)
                gathered = await gather(connection, asked)
        except UnknownShipmentError as error:
            raise Problem(Code.NOT_FOUND, str(error)) from error
        except NothingSealedError as error:
            raise Problem(Code.CONFLICT, str(error)) from error
        except ContradictionError as error:
            raise Problem(Code.INTERNAL_ERROR, str(error)) from error
    content = print_form(gathered, wanted.media_type, wanted.part).content
    if wanted.statement is not None:
        async with sources.pool.connection() as connection:
            await record_evidence(connection, gathered.bundle, content, actor=wanted.actor, form=wanted.media_type)
    shipment = gathered.bundle["shipment"]
    return PrintedEvidence(content=content, shipment_id=UUID(shipment["shipment_id"]), is_erased=shipment["erased"])


@dataclass(frozen=True, slots=True)
class EvidenceCalls:
    """The handler. Personal parts and bodies are in it for callers with scope `pii` only."""

    pool: Connections
    computing: Computing
    readings: PersonalReadings

    async def show(self, request: web.Request) -> web.StreamResponse:
        """The bundle, in the form that `Accept` prefers."""
        return await self._answer(request, None)

    async def make(self, request: web.Request) -> web.StreamResponse:
        """The same with what the merchant states."""
        return await self._answer(request, body(request, MerchantStatement))

    async def _answer(self, request: web.Request, statement: MerchantStatement | None) -> web.StreamResponse:
        asked = parameters(request, EvidenceParameters)
        if asked.carrier_id not in CARRIERS:
            raise Problem(Code.UNKNOWN_CARRIER, "no such carrier_id; `statesvc carriers` lists them")
        # evidence is complete for a key with the scope; asked for without it, personal evidence is refused rather than shortened
        personal = reads_personal(call_of(request), asked.include) or caller_of(request).has(Scope.PII)
        kind = _preferred(request.headers.get(hdrs.ACCEPT, ""))
        printed = await self.computing.evidence(
            EvidenceWanted(
                carrier_id=asked.carrier_id,
                number=number_of(asked.carrier_id, asked.tracking_number),
                discriminator=discriminator_of(asked.carrier_id, asked.discriminator),
                personal=personal,
                media_type=kind,
                part=asked.part,
                as_of=asked.as_of,
                statement=statement,
                actor=caller_of(request).actor,
            )
        )
        if personal and not printed.is_erased:
            target = f"shipment {printed.shipment_id}"
            async with self.pool.connection() as connection:
                await self.readings.record(connection, call_of(request), name="evidence", target=target, carrier_id=asked.carrier_id)
        headers = {
            hdrs.CACHE_CONTROL: "private, no-store",
            hdrs.VARY: f"{hdrs.ACCEPT}, {hdrs.AUTHORIZATION}",
            "Content-Security-Policy": _POLICY,
            "X-Content-Type-Options": "nosniff",
        }
        return web.Response(body=printed.content, content_type=kind, charset="utf-8" if kind == "text/html" else None, headers=headers)


def _preferred(accept: str) -> str:
    """The first of our kinds by the caller's weights; JSON where it names none of them."""
    weighed = []
    for place, part in enumerate(accept.split(",")):
        kind, _, parameter = part.strip().partition(";")
        try:
            weight = float(parameter.strip().removeprefix("q=")) if parameter.strip().startswith("q=") else 1.0
        except ValueError:
            weight = 0.0
        if kind.strip().lower() in _KINDS and weight > 0:
            weighed.append((-weight, place, kind.strip().lower()))
    return min(weighed)[2] if weighed else _JSON


def routes(pool: Connections, computing: Computing, readings: PersonalReadings) -> Sequence[Route]:
    """The calls for evidence."""
    calls = EvidenceCalls(pool, computing, readings)
    path = "/v1/shipments/{carrier_id}/{tracking_number}/evidence"
    problems = (Code.NOT_FOUND, Code.UNKNOWN_CARRIER, Code.CONFLICT, Code.LOG_UNAVAILABLE, Code.OVERLOADED)
    return [
        raw_route(
            f"GET {path}",
            calls.show,
            operation_id="get_shipment_evidence",
            summary="Evidence about a shipment",
            description="What the carrier said, when we knew it, what we concluded, what we sent, with proofs against the newest "
            "signed head. The JSON verifies by itself (`statesvc verify --bundle`); the zip has PDF, JSON and a verifier in one file. "
            "Personal parts and bodies only with scope `pii`.",
            scope="audit",
            tag="shipments",
            parameters=EvidenceParameters,
            response_types=_KINDS,
            problems=problems,
            is_computed=True,
            deadline_seconds=COMPUTING_SECONDS,
        ),
        raw_route(
            f"POST {path}",
            calls.make,
            operation_id="make_shipment_evidence",
            summary="Evidence for a case",
            description="The same with what the merchant states, marked as such, and whether the place of delivery agrees with its "
            "address. Who asked, for which case, and which file it was (SHA-256) enter the log; the statement itself is not stored.",
            scope="audit",
            tag="shipments",
            parameters=EvidenceParameters,
            request=MerchantStatement,
            response_types=_KINDS,
            problems=problems,
            is_computed=True,
            deadline_seconds=COMPUTING_SECONDS,
        ),
    ]
