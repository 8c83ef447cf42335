"""`GET /v1/feed`, `/v1/checkpoint...`: the log by index, and its signed heads."""

from typing import Annotated, Any, Final, Self

import orjson
from aiohttp import hdrs
from psycopg import AsyncConnection
from pydantic import AwareDatetime, Field, GetPydanticSchema, model_validator
from typing_extensions import TypedDict

from events.entry.kinds import EntryName
from statesvc.api import kit
from statesvc.api.key_words import no_log_key
from statesvc.log.checkpoints import SignedHead, cosigned_head, covering_head, latest_head
from statesvc.log.cursor import LogCursor, LostCursorError, read_cursor
from statesvc.log.feed import MissingEntryError, read_entries
from statesvc.log.signing_keys import read_keys
from statesvc.shipments.models import Hash, text_of

_TEXT: Final = "text/plain"
FEED_DEFAULT: Final = 100
FEED_MAX: Final = 1_000
INDEX_MAX: Final = 2**62

Index = Annotated[int, Field(ge=0, le=INDEX_MAX)]


class FeedParameters(kit.ClosedModel):
    """A range of the log."""

    after: Annotated[
        kit.CursorText,
        Field(
            description=(
                "`cursor` of the answer before, as it was given. Left out: from the first entry on."
            )
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


class CheckpointParameters(kit.ClosedModel):
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
    cosigned: Annotated[
        bool,
        Field(
            description=(
                "The newest that a quorum of witnesses cosigned, with their lines. Excludes `size`."
            )
        ),
    ] = False

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if self.cosigned and self.size is not None:
            raise ValueError("give `size` or `cosigned`")
        return self


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


@kit.operation(
    "GET /v1/feed",
    scope="audit",
    tag="log",
    problems=(kit.Code.INVALID_CURSOR, kit.Code.CURSOR_LOST, kit.Code.LOG_UNAVAILABLE),
)
async def read_feed(context: kit.Context, call: kit.Call[FeedParameters, None]) -> Feed:
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
            raise kit.Problem(kit.Code.INTERNAL_ERROR, str(error)) from error
        except LostCursorError as error:
            raise lost_cursor(error) from error
    # a client that waited beyond the end would miss what comes before its place
    if page.after.epoch > page.epoch or page.after.index >= max(page.tree_size, 1):
        raise kit.Problem(
            kit.Code.INVALID_CURSOR,
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
                # printed byte for byte, so that a client can hash what it received
                "entry": orjson.Fragment(entry.canonical),
            }
            for entry in page.entries
        ],
        "next_cursor": cursor if last + 1 < page.tree_size else None,
        "cursor": cursor,
        "tree_size": page.tree_size,
    }


@kit.operation(
    "GET /v1/checkpoint",
    scope="read",
    tag="log",
    response_types=(_TEXT,),
    statuses={kit.OK: "the note"},
    problems=(kit.Code.NOT_FOUND,),
)
async def get_checkpoint(
    context: kit.Context, call: kit.Call[CheckpointParameters, None]
) -> kit.RawAnswer[None]:
    """Show the log's signed head.

    A C2SP tlog-checkpoint as signed note, Ed25519. Keep a copy elsewhere: `statesvc verify
    --checkpoint FILE` checks the log against it.
    """
    async with context.pool.connection() as connection:
        head = (
            await cosigned_head(connection)
            if call.parameters.cosigned
            else await head_of(connection, call.parameters.size)
        )
    if head is None:
        raise kit.Problem(
            kit.Code.NOT_FOUND,
            "no quorum of witnesses has cosigned a checkpoint; `statesvc status` says why",
        )
    # a proxy that serves an old head would hide that the log was cut off
    call.headers[hdrs.CACHE_CONTROL] = "no-cache"
    second = head.second_signature if call.parameters.second_signature else None
    witnessed = head.cosignatures if call.parameters.cosigned else None
    note = head.note + (second or "") + (witnessed or "")
    return kit.RawAnswer(note.encode(), _TEXT, "utf-8")


@kit.operation(
    "GET /v1/checkpoint/keys",
    scope="read",
    tag="log",
    view=(
        kit.Table(
            kit.Column("id"),
            kit.Column("created_at", "Created"),
            kit.Column("retired_at", "Retired"),
            "key",
        ),
        kit.Sentences(no_log_key),
    ),
    commands=(
        kit.Command(
            name="keys log",
            summary="print the log's public keys, for verifiers",
        ),
    ),
)
async def list_checkpoint_keys(
    context: kit.Context, _call: kit.Call[None, None]
) -> kit.Page[LogKey]:
    """List the keys of the log's heads."""
    async with context.pool.connection() as connection:
        keys = await read_keys(connection)
    return kit.Page(
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


def lost_cursor(error: LostCursorError) -> kit.Problem:
    """Return the answer to a reader of entries that were lost."""
    return kit.Problem(
        kit.Code.CURSOR_LOST,
        str(error),
        members={"epoch": error.go_on.epoch, "go_on_after": str(error.go_on)},
    )


async def head_of(connection: AsyncConnection[Any], size: int | None) -> SignedHead:
    head = await (latest_head(connection) if size is None else covering_head(connection, size))
    if head is None:
        raise kit.Problem(
            kit.Code.NOT_FOUND,
            "the log has no such checkpoint yet: it is signed within a second of what it covers",
        )
    return head


OPERATIONS: Final = (
    read_feed,
    get_checkpoint,
    list_checkpoint_keys,
)
