"""`GET /v1/shipments/{carrier_id}/{tracking_number}/evidence`: one document that is complete in itself, as JSON, HTML or PDF."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final
from uuid import UUID

import orjson
from aiohttp import hdrs, web
from pydantic import BaseModel, ConfigDict, Field

from events.carriers import CARRIERS
from events.recipes import discriminator_of, number_of
from statesvc.api.computing import COMPUTING_SECONDS, Computing, EvidenceWanted, PrintedEvidence, Sources
from statesvc.api.parameters import Discriminator, EvidencePart, Name
from statesvc.api.personal_reads import Include, PersonalReadings, reads_personal
from statesvc.database.pool import Connections
from statesvc.evidence.gather import NothingSealedError, UnknownShipmentError, Wanted, gather
from statesvc.http.api_keys import caller_of
from statesvc.http.key_store import Scope
from statesvc.http.operation import Route, operation, parameters
from statesvc.http.problem import Code, Problem
from statesvc.log.proofs import ContradictionError
from statesvc.log.snapshot import take_snapshot

_JSON: Final = "application/json"
_PDF: Final = "application/pdf"


class EvidenceParameters(BaseModel):
    """One shipment."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    carrier_id: Name
    tracking_number: Name
    discriminator: Discriminator = None
    include: Include = None
    part: Annotated[
        EvidencePart, Field(description="Of a PDF. The document has at most 18 pages; the annex has everything, of any length.")
    ] = "document"


def _html(bundle: Mapping[str, Any]) -> bytes:
    from statesvc.evidence.evidence_report import report_of  # noqa: PLC0415 - as above
    from statesvc.evidence.html_page import html_of  # noqa: PLC0415 - a process that never shows evidence need not hold it in memory

    return html_of(report_of(bundle))


def _pdf(bundle: Mapping[str, Any]) -> bytes:
    from statesvc.evidence.evidence_report import report_of  # noqa: PLC0415 - as above
    from statesvc.evidence.pdf import print_report  # noqa: PLC0415 - as above

    return print_report(report_of(bundle)).document.content


def _annex(bundle: Mapping[str, Any]) -> bytes:
    from statesvc.evidence.evidence_report import report_of  # noqa: PLC0415 - as above
    from statesvc.evidence.pdf import annex_pages  # noqa: PLC0415 - as above

    return annex_pages(report_of(bundle)).content


PRINTERS: Final[Mapping[str, Callable[[Mapping[str, Any]], bytes]]] = {_JSON: orjson.dumps, "text/html": _html, _PDF: _pdf}


async def print_evidence(sources: Sources, wanted: EvidenceWanted) -> PrintedEvidence:
    """Gathers, proves, seals and prints. Raises Problem."""
    asked = Wanted(
        carrier_id=wanted.carrier_id,
        number=wanted.number,
        discriminator=wanted.discriminator,
        keyring=sources.keyring,
        personal=wanted.personal,
        archive=sources.folder,
    )
    async with sources.pool.connection() as connection:
        await sources.archive.bring_back_number(connection, asked.carrier_id, asked.number)
        try:
            async with connection.transaction():
                await take_snapshot(connection)
                bundle = await gather(connection, asked)
        except UnknownShipmentError as error:
            raise Problem(Code.NOT_FOUND, str(error)) from error
        except NothingSealedError as error:
            raise Problem(Code.CONFLICT, str(error)) from error
        except ContradictionError as error:
            raise Problem(Code.INTERNAL_ERROR, str(error)) from error
    shipment = bundle["shipment"]
    printer = _annex if wanted.part == "annex" and wanted.media_type == _PDF else PRINTERS[wanted.media_type]
    return PrintedEvidence(content=printer(bundle), shipment_id=UUID(shipment["shipment_id"]), is_erased=shipment["erased"])


@dataclass(frozen=True, slots=True)
class EvidenceCalls:
    """The handler. Personal parts and bodies are in it for callers with scope `pii` only."""

    pool: Connections
    computing: Computing
    readings: PersonalReadings

    async def show(self, request: web.Request) -> web.StreamResponse:
        """The bundle, in the form that `Accept` prefers."""
        asked = parameters(request, EvidenceParameters)
        if asked.carrier_id not in CARRIERS:
            raise Problem(Code.UNKNOWN_CARRIER, "no such carrier_id; `statesvc carriers` lists them")
        # evidence is complete for a key with the scope; asked for without it, personal evidence is refused rather than shortened
        personal = reads_personal(request, asked.include) or caller_of(request).has(Scope.PII)
        kind = _preferred(request.headers.get(hdrs.ACCEPT, ""))
        printed = await self.computing.evidence(
            EvidenceWanted(
                carrier_id=asked.carrier_id,
                number=number_of(asked.carrier_id, asked.tracking_number),
                discriminator=discriminator_of(asked.carrier_id, asked.discriminator),
                personal=personal,
                media_type=kind,
                part=asked.part,
            )
        )
        if personal and not printed.is_erased:
            target = f"shipment {printed.shipment_id}"
            async with self.pool.connection() as connection:
                await self.readings.record(connection, request, call="evidence", target=target, carrier_id=asked.carrier_id)
        headers = {hdrs.CACHE_CONTROL: "private, no-store", hdrs.VARY: f"{hdrs.ACCEPT}, {hdrs.AUTHORIZATION}"}
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
        if kind.strip().lower() in PRINTERS and weight > 0:
            weighed.append((-weight, place, kind.strip().lower()))
    return min(weighed)[2] if weighed else _JSON


def routes(pool: Connections, computing: Computing, readings: PersonalReadings) -> Sequence[Route]:
    """The call for evidence."""
    return [
        Route(
            "GET",
            "/v1/shipments/{carrier_id}/{tracking_number}/evidence",
            EvidenceCalls(pool, computing, readings).show,
            operation(
                operation_id="get_shipment_evidence",
                summary="Evidence about a shipment",
                description="What the carrier said, when we knew it, what we concluded, what we sent, with proofs against the newest "
                "signed head. The JSON verifies by itself (`statesvc verify --bundle`). Personal parts and bodies only with scope `pii`.",
                scope="audit",
                tag="shipments",
                parameters=EvidenceParameters,
                response_types=tuple(PRINTERS),
                problems=(Code.NOT_FOUND, Code.UNKNOWN_CARRIER, Code.CONFLICT, Code.LOG_UNAVAILABLE, Code.OVERLOADED),
                is_computed=True,
                deadline_seconds=COMPUTING_SECONDS,
            ),
        )
    ]
