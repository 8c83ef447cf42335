"""`GET /v1/proofs/...`: proofs that an entry is in the log, and that it only grew."""

from typing import Annotated, Any, Final, Self

from psycopg import AsyncConnection
from pydantic import Field, model_validator
from typing_extensions import TypedDict

from events.merkle.checkpoint import read_checkpoint
from events.merkle.proof_forms import Inclusion, cose_receipt, tlog_proof
from statesvc.api import kit
from statesvc.api.log_operations import INDEX_MAX, Index, head_of
from statesvc.http.document_forms import preferred
from statesvc.log import proofs
from statesvc.log.signing_keys import open_signers, read_keys
from statesvc.shipments.models import Hash

_JSON: Final = "application/json"
_TEXT: Final = "text/plain"
_COSE: Final = "application/cose"


class InclusionParameters(kit.ClosedModel):
    """An entry by its index, or an event by its ids."""

    index: Index | None = None
    carrier_id: kit.Name | None = None
    event_id: kit.Name | None = None
    size: Annotated[
        Index | None,
        Field(
            description=(
                "Below the first checkpoint that covers this many entries. Left out: the newest."
            )
        ),
    ] = None

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        by_event = (self.carrier_id is not None, self.event_id is not None)
        if by_event not in {(True, True), (False, False)} or (self.index is None) != by_event[0]:
            raise ValueError("give `index`, or `carrier_id` and `event_id`")
        return self


class InclusionAnswer(TypedDict):
    """Proof that an entry is in the log (RFC 9162 section 2.1.3)."""

    index: int
    tree_size: int
    leaf_hash: Hash
    path: Annotated[list[Hash], Field(description="The lowest sibling first.")]
    root: Hash
    checkpoint: Annotated[str, Field(description="The signed note that says this size and root.")]


class ConsistencyParameters(kit.ClosedModel):
    """Two sizes of the log."""

    from_size: Annotated[
        int, Field(alias="from", ge=0, le=INDEX_MAX, description="Size of the older tree.")
    ]
    to_size: Annotated[
        Index | None,
        Field(
            alias="to", description="Size of the newer tree. Left out: of the newest checkpoint."
        ),
    ] = None


_Sizes = TypedDict("_Sizes", {"from": int, "to": int})


class ConsistencyAnswer(_Sizes):
    """Proof that the newer tree begins with the older (RFC 9162 section 2.1.4)."""

    from_root: Hash
    to_root: Hash
    path: list[Hash]
    checkpoint: Annotated[str, Field(description="The newest signed note; covers `to`.")]


@kit.operation(
    "GET /v1/proofs/inclusion",
    scope="read",
    tag="log",
    rules=("It takes `index`, or `carrier_id` and `event_id`.",),
    response_types=(_JSON, _TEXT, _COSE),
    problems=(
        kit.Code.NOT_FOUND,
        kit.Code.UNKNOWN_CARRIER,
        kit.Code.NOT_SEALED,
        kit.Code.LOG_UNAVAILABLE,
    ),
)
async def prove_inclusion(
    context: kit.Context, call: kit.Call[InclusionParameters, None]
) -> kit.RawAnswer[InclusionAnswer]:
    """Prove that an entry is in the log.

    `Accept: text/plain` asks for a C2SP tlog-proof, `application/cose` for a COSE receipt
    (RFC 9942).
    """
    wanted = call.parameters
    form = preferred(call.accept, (_TEXT, _COSE))
    async with context.pool.connection() as connection:
        index = wanted.index
        if index is None:
            index = await _index_of(
                context, connection, wanted.carrier_id or "", wanted.event_id or ""
            )
        head = await head_of(connection, wanted.size)
        # sealed within a second: the client may ask again, so this is no 404
        if index >= head.tree_size:
            raise kit.Problem(
                kit.Code.NOT_SEALED,
                f"the checkpoint covers {head.tree_size} entries, the last one is"
                f" {head.tree_size - 1}",
            )
        try:
            proof = await proofs.prove_inclusion(connection, index, head)
        except proofs.ContradictionError as error:
            raise kit.Problem(kit.Code.INTERNAL_ERROR, str(error)) from error
        inclusion = Inclusion(index, tuple(proof.path))
        if form == _COSE:
            keyring = await context.keyring()
            signer = open_signers(await read_keys(connection), keyring.master)[-1]
            receipt = cose_receipt(inclusion, read_checkpoint(head.note), signer)
            return kit.RawAnswer(receipt, _COSE)
    if form == _TEXT:
        note = head.note + (head.cosignatures or "")
        return kit.RawAnswer(tlog_proof(inclusion, note).encode(), _TEXT, "utf-8")
    found: InclusionAnswer = {
        "index": index,
        "tree_size": head.tree_size,
        "leaf_hash": proof.leaf_hash.hex(),
        "path": [each.hex() for each in proof.path],
        "root": head.root.hex(),
        "checkpoint": head.note,
    }
    return kit.RawAnswer(kit.printed(found))


@kit.operation(
    "GET /v1/proofs/consistency",
    scope="read",
    tag="log",
    problems=(kit.Code.NOT_FOUND, kit.Code.NOT_SEALED),
)
async def prove_consistency(
    context: kit.Context, call: kit.Call[ConsistencyParameters, None]
) -> ConsistencyAnswer:
    """Prove that the log only grew."""
    wanted = call.parameters
    async with context.pool.connection() as connection:
        head = await head_of(connection, None)
        to_size = head.tree_size if wanted.to_size is None else wanted.to_size
        if not wanted.from_size <= to_size <= head.tree_size:
            raise kit.Problem(
                kit.Code.NOT_SEALED,
                f"give sizes in their order, up to {head.tree_size}, which the newest"
                " checkpoint has",
            )
        try:
            proof = await proofs.prove_consistency(connection, wanted.from_size, to_size, head)
        except proofs.ContradictionError as error:
            raise kit.Problem(kit.Code.INTERNAL_ERROR, str(error)) from error
    return {
        "from": proof.first,
        "to": proof.second,
        "from_root": proof.first_root.hex(),
        "to_root": proof.second_root.hex(),
        "path": [each.hex() for each in proof.path],
        "checkpoint": head.note,
    }


async def _index_of(
    context: kit.Context, connection: AsyncConnection[Any], carrier_id: str, event_id: str
) -> int:
    known, index = await proofs.position_of_event(
        connection, carrier_id=carrier_id, event_id=event_id, archive=context.log_archive()
    )
    if not known:
        context.refuse_unknown(carrier_id)
        raise kit.Problem(kit.Code.NOT_FOUND, "the log has no such event")
    if index is None:
        raise kit.Problem(kit.Code.NOT_SEALED, "the event is not sealed yet: ask again in a second")
    return index


OPERATIONS: Final = (prove_inclusion, prove_consistency)
