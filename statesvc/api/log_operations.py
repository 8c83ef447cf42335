"""`GET /v1/feed`, `/v1/checkpoint`, `/v1/proofs/...`: the log by index, signed heads, proofs."""

from typing import Annotated, Any, Final, Self

import orjson
from aiohttp import hdrs
from psycopg import AsyncConnection
from pydantic import AwareDatetime, Field, GetPydanticSchema, model_validator
from typing_extensions import TypedDict

from events.entry.kinds import EntryName
from events.merkle.checkpoint import read_checkpoint
from events.merkle.proof_forms import Inclusion, cose_receipt, tlog_proof
from statesvc.api.key_words import no_log_key
from statesvc.api.operation_context import Context
from statesvc.api.parameters import CursorText, Name
from statesvc.http.call import Call
from statesvc.http.closed_model import ClosedModel
from statesvc.http.document_forms import preferred
from statesvc.http.faces import Command
from statesvc.http.operation import RawAnswer, operation, printed
from statesvc.http.paging import Page
from statesvc.http.problem import OK, Code, Problem
from statesvc.http.views import Column, Sentences, Table
from statesvc.log import proofs
from statesvc.log.checkpoints import SignedHead, covering_head, latest_head
from statesvc.log.cursor import LogCursor, LostCursorError, read_cursor
from statesvc.log.feed import MissingEntryError, read_entries
from statesvc.log.signing_keys import open_signers, read_keys
from statesvc.shipments.models import Hash, text_of

_JSON: Final = "application/json"
_TEXT: Final = "text/plain"
_COSE: Final = "application/cose"
FEED_DEFAULT: Final = 100
FEED_MAX: Final = 1_000
INDEX_MAX: Final = 2**62

Index = Annotated[int, Field(ge=0, le=INDEX_MAX)]


class FeedParameters(ClosedModel):
    """A range of the log."""

    after: Annotated[
        CursorText,
        Field(
            description="`cursor` of the answer before, as it was given. Left out: from the first entry on."
        ),
    ] = "-1"
    limit: Annotated[int, Field(ge=1, le=FEED_MAX, description="Entries per answer.")] = (
        FEED_DEFAULT
    )


class FeedEntry(TypedDict):
    """An entry of the log."""

    index: int
    kind: Annotated[str, text_of(EntryName)]
    leaf_hash: Annotated[
        Hash,
        Field(description="SHA-256 of a zero byte and the entry in canonical JSON (RFC 8785)."),
    ]
    sealed_at: AwareDatetime
    entry: Annotated[
        orjson.Fragment,
        GetPydanticSchema(lambda _source, handler: handler(dict[str, Any])),
        Field(description="All that the entry binds; printed here in its canonical form."),
    ]


class Feed(TypedDict):
    """A range of the log, in its order."""

    items: list[FeedEntry]
    next_cursor: Annotated[
        str | None,
        Field(description="`after` of the next call; null where this was the end for now."),
    ]
    cursor: Annotated[
        str, Field(description="Where this answer ends: `after` of the next call, now or later.")
    ]
    tree_size: Annotated[int, Field(description="How many entries the newest checkpoint covers.")]


class CheckpointParameters(ClosedModel):
    """Selection of a checkpoint."""

    size: Annotated[
        Index | None,
        Field(
            description="The first checkpoint that covers this many entries. Left out: the newest."
        ),
    ] = None
    second_signature: Annotated[
        bool,
        Field(description="Add the ML-DSA-44 line, which the newest checkpoint has beside it."),
    ] = False


class LogKey(TypedDict):
    """A key that signs, or signed, checkpoints."""

    id: Annotated[str, Field(description="8 hexadecimal digits, as in signatures.")]
    key: Annotated[
        str, Field(description="C2SP verifier key: name, key id, base64 of type and Ed25519 key.")
    ]
    cosigner: Annotated[
        str | None,
        Field(description="Verifier key of the ML-DSA-44 half, which signs the newest head too."),
    ]
    created_at: AwareDatetime
    retired_at: AwareDatetime | None


class InclusionParameters(ClosedModel):
    """An entry by its index, or an event by its ids."""

    index: Index | None = None
    carrier_id: Name | None = None
    event_id: Name | None = None
    size: Annotated[
        Index | None,
        Field(
            description="Below the first checkpoint that covers this many entries. Left out: the newest."
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


class ConsistencyParameters(ClosedModel):
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


@operation(
    "GET /v1/feed",
    scope="audit",
    tag="log",
    problems=(Code.INVALID_CURSOR, Code.CURSOR_LOST, Code.LOG_UNAVAILABLE),
)
async def read_feed(context: Context, call: Call[FeedParameters, None]) -> Feed:
    """Read the log by index.

    All entries in the log's single order: never skips an entry that committed late, never
    repeats an entry. Ask again with `after` set to `cursor`. A cursor is `epoch.index`; after a
    restore that lost entries, a cursor beyond the restored end gets 410 with `go_on_after`.
    Never holds personal fields.
    """
    wanted = call.parameters
    async with context.pool.connection() as connection:
        try:
            page = await read_entries(
                connection,
                after=read_cursor(wanted.after),
                limit=wanted.limit,
                archive=context.log_archive(),
            )
        except MissingEntryError as error:
            raise Problem(Code.INTERNAL_ERROR, str(error)) from error
        except LostCursorError as error:
            raise lost_cursor(error) from error
    if page.after.epoch > page.epoch or page.after.index >= max(page.tree_size, 1):
        raise Problem(
            Code.INVALID_CURSOR,
            f"the log has {page.tree_size} entries: `after` was given by another log",
        )
    last = page.after.index + len(page.entries)
    cursor = str(LogCursor(page.epoch, last))
    return {
        "items": [
            {
                "index": entry.log_index,
                "kind": entry.kind,
                "leaf_hash": entry.leaf_hash.hex(),
                "sealed_at": entry.sealed_at,
                "entry": orjson.Fragment(entry.canonical),
            }
            for entry in page.entries
        ],
        "next_cursor": cursor if last + 1 < page.tree_size else None,
        "cursor": cursor,
        "tree_size": page.tree_size,
    }


@operation(
    "GET /v1/checkpoint",
    scope="read",
    tag="log",
    response_types=(_TEXT,),
    statuses={OK: "the note"},
    problems=(Code.NOT_FOUND,),
)
async def get_checkpoint(
    context: Context, call: Call[CheckpointParameters, None]
) -> RawAnswer[None]:
    """Show the log's signed head.

    A C2SP tlog-checkpoint as signed note, Ed25519. Keep a copy elsewhere: `statesvc verify
    --checkpoint FILE` checks the log against it.
    """
    async with context.pool.connection() as connection:
        head = await _head(connection, call.parameters.size)
    call.headers[hdrs.CACHE_CONTROL] = "no-cache"
    second = head.second_signature if call.parameters.second_signature else None
    return RawAnswer((head.note + (second or "")).encode(), _TEXT, "utf-8")


@operation(
    "GET /v1/checkpoint/keys",
    scope="read",
    tag="log",
    view=(
        Table(
            Column("id"),
            Column("created_at", "Created"),
            Column("retired_at", "Retired"),
            "key",
        ),
        Sentences(no_log_key),
    ),
    commands=(
        Command(
            name="keys log",
            summary="the public keys of the log's checkpoints, for those who verify it",
        ),
    ),
)
async def list_checkpoint_keys(context: Context, _call: Call[None, None]) -> Page[LogKey]:
    """List the keys of the log's heads."""
    async with context.pool.connection() as connection:
        keys = await read_keys(connection)
    return Page(
        [
            LogKey(
                id=key.verifier.key_id.hex(),
                key=str(key.verifier),
                cosigner=None if key.cosigner is None else str(key.cosigner),
                created_at=key.created_at,
                retired_at=key.retired_at,
            )
            for key in keys
        ],
        None,
    )


@operation(
    "GET /v1/proofs/inclusion",
    scope="read",
    tag="log",
    rules=("It takes `index`, or `carrier_id` and `event_id`.",),
    response_types=(_JSON, _TEXT, _COSE),
    problems=(Code.NOT_FOUND, Code.UNKNOWN_CARRIER, Code.NOT_SEALED, Code.LOG_UNAVAILABLE),
)
async def prove_inclusion(
    context: Context, call: Call[InclusionParameters, None]
) -> RawAnswer[InclusionAnswer]:
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
        head = await _head(connection, wanted.size)
        if index >= head.tree_size:
            raise Problem(
                Code.NOT_SEALED,
                f"the checkpoint covers {head.tree_size} entries, the last one is {head.tree_size - 1}",
            )
        try:
            proof = await proofs.prove_inclusion(connection, index, head)
        except proofs.ContradictionError as error:
            raise Problem(Code.INTERNAL_ERROR, str(error)) from error
        inclusion = Inclusion(index, tuple(proof.path))
        if form == _COSE:
            keyring = await context.keyring()
            signer = open_signers(await read_keys(connection), keyring.master)[-1]
            receipt = cose_receipt(inclusion, read_checkpoint(head.note), signer)
            return RawAnswer(receipt, _COSE)
    if form == _TEXT:
        return RawAnswer(tlog_proof(inclusion, head.note).encode(), _TEXT, "utf-8")
    found: InclusionAnswer = {
        "index": index,
        "tree_size": head.tree_size,
        "leaf_hash": proof.leaf_hash.hex(),
        "path": [each.hex() for each in proof.path],
        "root": head.root.hex(),
        "checkpoint": head.note,
    }
    return RawAnswer(printed(found))


@operation(
    "GET /v1/proofs/consistency",
    scope="read",
    tag="log",
    problems=(Code.NOT_FOUND, Code.NOT_SEALED),
)
async def prove_consistency(
    context: Context, call: Call[ConsistencyParameters, None]
) -> ConsistencyAnswer:
    """Prove that the log only grew."""
    wanted = call.parameters
    async with context.pool.connection() as connection:
        head = await _head(connection, None)
        to_size = head.tree_size if wanted.to_size is None else wanted.to_size
        if not wanted.from_size <= to_size <= head.tree_size:
            raise Problem(
                Code.NOT_SEALED,
                f"give sizes in their order, up to {head.tree_size}, which the newest checkpoint has",
            )
        try:
            proof = await proofs.prove_consistency(connection, wanted.from_size, to_size, head)
        except proofs.ContradictionError as error:
            raise Problem(Code.INTERNAL_ERROR, str(error)) from error
    return {
        "from": proof.first,
        "to": proof.second,
        "from_root": proof.first_root.hex(),
        "to_root": proof.second_root.hex(),
        "path": [each.hex() for each in proof.path],
        "checkpoint": head.note,
    }


async def _index_of(
    context: Context, connection: AsyncConnection[Any], carrier_id: str, event_id: str
) -> int:
    known, index = await proofs.position_of_event(
        connection, carrier_id=carrier_id, event_id=event_id, archive=context.log_archive()
    )
    if not known:
        context.refuse_unknown(carrier_id)
        raise Problem(Code.NOT_FOUND, "the log has no such event")
    if index is None:
        raise Problem(Code.NOT_SEALED, "the event is not sealed yet: ask again in a second")
    return index


def lost_cursor(error: LostCursorError) -> Problem:
    """Return the answer to a reader of entries that were lost."""
    return Problem(
        Code.CURSOR_LOST,
        str(error),
        members={"epoch": error.go_on.epoch, "go_on_after": str(error.go_on)},
    )


async def _head(connection: AsyncConnection[Any], size: int | None) -> SignedHead:
    head = await (latest_head(connection) if size is None else covering_head(connection, size))
    if head is None:
        raise Problem(
            Code.NOT_FOUND,
            "the log has no such checkpoint yet: it is signed within a second of what it covers",
        )
    return head


OPERATIONS: Final = (
    read_feed,
    get_checkpoint,
    list_checkpoint_keys,
    prove_inclusion,
    prove_consistency,
)
