"""`GET /v1/messages/{message_id}`: a carrier's message, byte for byte, and its outcome."""

import base64
from collections.abc import Mapping
from typing import Annotated, Final, Literal, NotRequired
from uuid import UUID

from aiohttp import hdrs
from pydantic import AwareDatetime, Field
from typing_extensions import TypedDict

from statesvc.api import kit
from statesvc.api import message_words as words
from statesvc.bodies.find_bodies import BodyLocation
from statesvc.bodies.masked_body import mask_body
from statesvc.shipments.models import text_of
from statesvc.shipments.stored_message import FoundMessage, find_message, may_be_spooled, open_body

_PII = (
    "Only with `include=personal`, which takes scope `pii` and is recorded as a reading of personal"
    " data; null where the body is no more."
)


class MessageParameters(kit.ClosedModel):
    """A message."""

    message_id: UUID
    include: kit.Include = None
    structure: Annotated[
        bool, Field(description="With `body_structure`: the body with every value masked.")
    ] = False


class BodyStructure(TypedDict):
    """A body without its values."""

    text: Annotated[
        str,
        Field(
            description=(
                "Names of members and elements, and brackets; of a long one the beginning and the"
                " end."
            )
        ),
    ]
    characters: Annotated[int, Field(description="Of the whole body.")]
    is_cut_off: Annotated[
        bool, Field(description="Something that was opened is not closed where it ends.")
    ]


class ShownMessage(TypedDict):
    """A carrier webhook, or a request with canonical events."""

    message_id: UUID
    carrier_id: str
    received_at: AwareDatetime
    state: Annotated[
        str,
        text_of(Literal["waiting", "settled", "dead_letter", "discarded"]),
        Field(description="`discarded`: a human settled its dead letter."),
    ]
    settled_at: AwareDatetime | None
    outcome: Annotated[str, text_of(Literal["applied", "empty"])] | None
    events: Annotated[int | None, Field(description="How many it said, duplicates among them.")]
    attempts: int
    normalizer: Annotated[str | None, Field(description="The code and version that read it.")]
    worker: str | None
    shipments: Annotated[
        list[UUID],
        Field(
            description=(
                "The shipments that it names: erasing any of them makes the body unreadable."
            )
        ),
    ]
    body_place: Annotated[
        BodyLocation,
        Field(
            description=(
                "`hot`: in the database; `archived`: in the archive of its day; `expired`: its"
                " months are over; `erased`: its key is destroyed; `missing`: nothing on record"
                " explains its absence."
            )
        ),
    ]
    body_commitment: Annotated[
        str | None,
        Field(description="SHA-256 of salt and body, as every event of the message binds it."),
    ]
    headers: Annotated[
        Mapping[str, str] | None,
        Field(description="The request headers that were stored; null where the body is no more."),
    ]
    body_bytes: NotRequired[Annotated[int | None, Field(description=_PII)]]
    body_base64: NotRequired[Annotated[str | None, Field(description=_PII)]]
    body_structure: NotRequired[
        Annotated[
            BodyStructure | None,
            Field(description="Only with `structure`; null where the body is no more."),
        ]
    ]
    body_text: NotRequired[
        Annotated[str | None, Field(description=_PII + " Null too where it is not UTF-8.")]
    ]


@kit.operation(
    "GET /v1/messages/{message_id}",
    scope="audit",
    tag="messages",
    request_headers=kit.WHY_TAKEN,
    problems=(kit.Code.NOT_FOUND, kit.Code.BODY_UNAVAILABLE),
    view=(
        kit.Details(
            "carrier_id",
            "received_at",
            "state",
            "outcome",
            "events",
            "attempts",
            "settled_at",
            kit.Column("normalizer", "Read by"),
            "worker",
            "shipments",
            kit.Column("body_place", "Body"),
            kit.Column("body_commitment", "Commitment of the body"),
            "headers",
        ),
        kit.Excerpt(words.body, "What the carrier sent"),
        kit.Sentences(words.about_body),
    ),
    pages=(
        kit.ConsolePage(
            path="/console/messages/{message_id}",
            title="Message {message_id}",
            section="/console/dead-letters",
            fixed={"structure": True},
            personal="The body may hold personal data.",
        ),
    ),
)
async def get_message(
    context: kit.Context, call: kit.Call[MessageParameters, None]
) -> ShownMessage:
    """Show a message.

    The outcome of a webhook and the place of its body; with `include=personal` the body byte
    for byte; with `structure` the body with every value masked.
    """
    message_id, personal = (
        call.parameters.message_id,
        kit.reads_personal(call, call.parameters.include),
    )
    call.headers[hdrs.CACHE_CONTROL] = "no-store"
    async with context.pool.connection() as connection:
        found = await find_message(connection, message_id, folder=context.archive)
        if found is None:
            raise kit.Problem(
                kit.Code.NOT_FOUND,
                "no message has this id yet; if it was acknowledged while the database was away,"
                " it waits in a spool and is shown once that is drained"
                if await may_be_spooled(connection, message_id)
                else "no message has this id",
            )
        shown = _shown(found)
        if call.parameters.structure:
            opened = (
                None
                if found.unavailable is not None
                else await open_body(connection, found, await context.keyring())
            )
            shown["body_structure"] = None if opened is None else _structure(opened)
        if personal:
            if found.unavailable is not None:
                raise kit.Problem(kit.Code.BODY_UNAVAILABLE, found.unavailable)
            body = await open_body(connection, found, await context.keyring())
            _add_body(shown, body)
            if body is not None:
                carrier_id = found.message.carrier_id
                await context.readings.record(
                    connection,
                    call,
                    name="message",
                    target=f"message {message_id}",
                    carrier_id=carrier_id,
                )
    return shown


def _shown(found: FoundMessage) -> ShownMessage:
    message, stored = found.message, found.stored
    return {
        "message_id": message.message_id,
        "carrier_id": message.carrier_id,
        "received_at": message.received_at,
        "state": message.state,
        "settled_at": message.settled_at,
        "outcome": message.outcome,
        "events": message.events,
        "attempts": message.attempts,
        "normalizer": message.normalizer,
        "worker": message.worker,
        "shipments": message.shipments,
        "body_place": found.place,
        "body_commitment": None if stored is None else stored.commitment.hex(),
        "headers": None if stored is None else stored.headers,
    }


def _structure(body: bytes) -> BodyStructure:
    masked = mask_body(body)
    return {"text": masked.text, "characters": masked.characters, "is_cut_off": masked.is_cut_off}


def _add_body(shown: ShownMessage, body: bytes | None) -> None:
    """Add the body in two spellings: exact, and readable where it is text."""
    shown["body_bytes"] = None if body is None else len(body)
    shown["body_base64"] = None if body is None else base64.b64encode(body).decode()
    try:
        shown["body_text"] = None if body is None else body.decode()
    except UnicodeDecodeError:
        shown["body_text"] = None


OPERATIONS: Final = (get_message,)
