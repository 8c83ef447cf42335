"""`/v1/shipments/{carrier_id}/{tracking_number}/evidence`: one document that is complete in itself,
as JSON, HTML, PDF, or all in a zip.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final
from uuid import UUID

from aiohttp import hdrs
from psycopg import AsyncConnection
from pydantic import Field

from events.identity.recipes import discriminator_of, number_of
from statesvc.addons.evidence.bundle import EvidencePart
from statesvc.addons.evidence.gather import (
    BundleRequest,
    NothingSealedError,
    SeveralShipmentsError,
    UnknownShipmentError,
    gather,
)
from statesvc.addons.evidence.merchant_statement import MerchantStatement, statement_commitment
from statesvc.api import kit
from statesvc.api.computing import COMPUTING_SECONDS, Sources
from statesvc.api.parameters import AsOf, Discriminator
from statesvc.http.document_forms import FORMS, preferred
from statesvc.http.keys.key_store import Scope
from statesvc.log.actions import SHIPMENT, record_action
from statesvc.log.history import take_snapshot
from statesvc.log.proofs import ContradictionError

_ONE: Final = "/v1/shipments/{carrier_id}/{tracking_number}/evidence"
_JSON: Final = FORMS[".json"]
_HTML: Final = FORMS[".html"]
_KINDS: Final = tuple(FORMS.values())
_PROBLEMS: Final = (
    kit.Code.NOT_FOUND,
    kit.Code.UNKNOWN_CARRIER,
    kit.Code.CONFLICT,
    kit.Code.LOG_UNAVAILABLE,
    kit.Code.OVERLOADED,
)
# The document has its style and its pictures in itself, and runs no script.
_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri"
    " 'none'; frame-ancestors 'none'; sandbox"
)
_ABOUT: Final = {
    "Statesvc-Entries": "How many entries of the log the evidence holds.",
    "Statesvc-Sealed-At": "When the head that it is proved by was signed.",
    "Statesvc-Annex": "`true`: a PDF that left something out; `part=annex` has all of it.",
}
_operation = partial(
    kit.operation,
    scope="audit",
    tag="shipments",
    response_types=_KINDS,
    response_headers=_ABOUT,
    problems=_PROBLEMS,
    is_computed=True,
    deadline_seconds=COMPUTING_SECONDS,
)
# The verb of the entry.
MAKE_EVIDENCE: Final = "make_evidence"


class EvidenceParameters(kit.ClosedModel):
    """One shipment."""

    carrier_id: kit.Name
    tracking_number: kit.Name
    discriminator: Annotated[
        Discriminator,
        Field(
            description=(
                "Which of the shipments that bear the number. Needed where there are several: 409"
                " lists them."
            )
        ),
    ] = None
    as_of: AsOf = None
    include: kit.Include = None
    without_personal: Annotated[
        bool,
        Field(
            description=(
                "No personal parts and no bodies, also for scope `pii`; the proofs hold"
                " nevertheless."
            )
        ),
        kit.FieldFace(flag="--without-personal-data"),
    ] = False
    part: Annotated[
        EvidencePart,
        Field(
            description=(
                "Of a PDF. The document has at most 18 pages; the annex has everything, of any"
                " length."
            )
        ),
    ] = "document"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRequest:
    """A request for a bundle in a media type. `part`: of a PDF. `actor`: who asked."""

    bundle: BundleRequest
    media_type: str
    part: EvidencePart
    actor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedEvidence:
    """The document, and its shipment."""

    content: bytes
    shipment_id: UUID
    is_erased: bool
    entries: int
    sealed_at: str
    has_annex: bool


@_operation(f"GET {_ONE}")
async def get_shipment_evidence(
    context: kit.Context, call: kit.Call[EvidenceParameters, None]
) -> kit.RawAnswer[None]:
    """Export evidence about a shipment.

    What the carrier said, when we knew it, what we concluded, what we sent, with proofs against the
    newest signed head. The JSON verifies by itself (`statesvc verify --bundle`); the zip has PDF,
    JSON and a verifier in one file. Personal parts and bodies only with scope `pii`.
    """
    return await _evidence(context, call, None)


@_operation(f"POST {_ONE}")
async def make_shipment_evidence(
    context: kit.Context, call: kit.Call[EvidenceParameters, MerchantStatement]
) -> kit.RawAnswer[None]:
    """Make evidence for a case.

    It has what the merchant states, marked as such. Who asked, for which case, and which file it
    was (SHA-256) enter the log; the statement itself is not stored.
    """
    return await _evidence(context, call, call.body)


async def _evidence(
    context: kit.Context,
    call: kit.Call[EvidenceParameters, Any],
    statement: MerchantStatement | None,
) -> kit.RawAnswer[None]:
    wanted = call.parameters
    carrier_id = context.carrier(wanted.carrier_id).carrier_id
    # evidence is complete for a key with the scope; asked for without it, personal evidence is
    # refused rather than shortened
    personal = (
        kit.reads_personal(call, wanted.include) or call.caller.has(Scope.PII)
    ) and not wanted.without_personal
    kind = preferred(call.accept, _KINDS) or _JSON
    computing = await context.computing()
    evidence: PrintedEvidence = await computing.compute(
        "evidence",
        EvidenceRequest(
            bundle=BundleRequest(
                carrier_id=carrier_id,
                number=number_of(carrier_id, wanted.tracking_number),
                discriminator=discriminator_of(carrier_id, wanted.discriminator),
                personal=personal,
                as_of=wanted.as_of,
                statement=statement,
            ),
            media_type=kind,
            part=wanted.part,
            actor=call.caller.actor,
        ),
    )
    # an erased shipment has nothing personal left that could have been read
    if personal and not evidence.is_erased:
        async with context.pool.connection() as connection:
            target = f"shipment {evidence.shipment_id}"
            await context.readings.record(
                connection, call, name="evidence", target=target, carrier_id=carrier_id
            )
    call.headers |= {
        hdrs.CACHE_CONTROL: "private, no-store",
        hdrs.VARY: f"{hdrs.ACCEPT}, {hdrs.AUTHORIZATION}",
        "Content-Security-Policy": _POLICY,
        "X-Content-Type-Options": "nosniff",
        "Statesvc-Entries": str(evidence.entries),
        "Statesvc-Sealed-At": evidence.sealed_at,
        **({"Statesvc-Annex": "true"} if evidence.has_annex else {}),
    }
    return kit.RawAnswer(evidence.content, kind, "utf-8" if kind == _HTML else None)


async def print_evidence(sources: Sources, wanted: EvidenceRequest) -> PrintedEvidence:
    """Gather, prove, seal and print; evidence for a case is on record at return. Raises Problem."""
    # a process that only asks for evidence need not hold it
    from statesvc.addons.evidence.evidence_forms import print_form  # noqa: PLC0415

    # as above
    from statesvc.addons.evidence.pdf import NoTypesetterError, TypesettingTimeoutError  # noqa: PLC0415

    asked = wanted.bundle
    async with sources.pool.connection() as connection:
        # before the snapshot: it writes, and the snapshot must see what it wrote
        await sources.archive.restore_number(connection, asked.carrier_id, asked.number)
        try:
            async with connection.transaction():
                await take_snapshot(connection)
                gathered = await gather(connection, asked, sources.keyring, sources.folder)
        except UnknownShipmentError as error:
            raise kit.Problem(kit.Code.NOT_FOUND, str(error)) from error
        except (NothingSealedError, SeveralShipmentsError) as error:
            raise kit.Problem(kit.Code.CONFLICT, str(error)) from error
        except ContradictionError as error:
            raise kit.Problem(kit.Code.INTERNAL_ERROR, str(error)) from error
    try:
        file = print_form(gathered, wanted.media_type, wanted.part)
    except NoTypesetterError as error:
        raise kit.Problem(kit.Code.INVALID_REQUEST, str(error)) from error
    except TypesettingTimeoutError as error:
        raise kit.Problem(kit.Code.OVERLOADED, str(error)) from error
    # in a transaction of its own, after printing: the entry has the digest of the file
    if asked.statement is not None:
        async with sources.pool.connection() as connection:
            await record_evidence(
                connection,
                gathered.bundle,
                file.content,
                actor=wanted.actor,
                form=wanted.media_type,
            )
    shipment = gathered.bundle["shipment"]
    return PrintedEvidence(
        content=file.content,
        shipment_id=UUID(shipment["shipment_id"]),
        is_erased=shipment["erased"],
        entries=len(gathered.bundle["entries"]),
        sealed_at=str(gathered.bundle["log"]["sealed_at"]),
        has_annex=file.has_annex,
    )


OPERATIONS: Final = (get_shipment_evidence, make_shipment_evidence)


async def record_evidence(
    connection: AsyncConnection[Any],
    bundle: Mapping[str, Any],
    content: bytes,
    *,
    actor: str,
    form: str,
) -> None:
    """Append the entry, durably, before the file is handed out. `form`: its media type."""
    stated = bundle["stated"]
    statement = MerchantStatement.model_validate(stated["statement"])
    details = {
        "case": statement.case,
        "reason_code": statement.reason_code,
        "form": form,
        "sha256": hashlib.sha256(content).hexdigest(),
        "statement_commitment": statement_commitment(stated),
        "as_of": None if bundle["as_of"] is None else bundle["as_of"]["at"],
    }
    target = f"{SHIPMENT}{bundle['shipment']['shipment_id']}"
    shown = {name: value for name, value in details.items() if value is not None}
    async with connection.transaction():
        await record_action(
            connection, actor=actor, verb=MAKE_EVIDENCE, target=target, details=shown
        )
