"""`GET /v1/messages/{message_id}`: what a carrier sent, byte for byte, and what became of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal
from uuid import UUID

from aiohttp import hdrs, web
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from events.crypto.keyring import Keyring
from statesvc.api.personal_reads import record_reading
from statesvc.bodies.find_bodies import BodyLocation
from statesvc.database.pool import Connections
from statesvc.http.api_keys import caller_of
from statesvc.http.operation import Route, operation, parameters
from statesvc.http.problem import Code, Problem
from statesvc.http.response import answer
from statesvc.http.scope import Scope
from statesvc.shipments.message import body_json, find_message, message_json, open_body

_PII = "Only with scope `pii`, and then recorded as a reading of personal data; null where the body is no more."


class MessageParameters(BaseModel):
    """One message."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    message_id: UUID


class Message(BaseModel):
    """One carrier webhook, or one request with canonical events."""

    model_config = ConfigDict(extra="forbid")

    message_id: UUID
    carrier_id: str
    received_at: AwareDatetime
    state: Annotated[
        Literal["waiting", "settled", "dead_letter", "discarded"], Field(description="`discarded`: a human settled its dead letter.")
    ]
    settled_at: AwareDatetime | None
    outcome: Literal["applied", "empty"] | None
    events: Annotated[int | None, Field(description="How many it said, duplicates among them.")]
    attempts: int
    normalizer: Annotated[str | None, Field(description="The code and version that read it.")]
    worker: str | None
    shipments: Annotated[list[UUID], Field(description="The shipments that it names: erasing any of them makes the body unreadable.")]
    body_place: Annotated[
        BodyLocation,
        Field(
            description="`hot`: in the database; `archived`: in the archive of its day; `expired`: its months are over; "
            "`erased`: its key is destroyed; `missing`: nothing on record explains its absence."
        ),
    ]
    body_commitment: Annotated[str | None, Field(description="SHA-256 of salt and body, as every event of the message binds it.")]
    headers: Annotated[dict[str, str] | None, Field(description="The request headers that were kept; null where the body is no more.")]
    body_bytes: Annotated[int | None, Field(description=_PII)] = None
    body_base64: Annotated[str | None, Field(description=_PII)] = None
    body_text: Annotated[str | None, Field(description=_PII + " Null too where it is not UTF-8.")] = None


@dataclass(frozen=True, slots=True)
class Messages:
    """The handler."""

    pool: Connections
    keyring: Keyring
    folder: Path | None

    async def show(self, request: web.Request) -> web.StreamResponse:
        """The message; with scope `pii` its body too."""
        message_id = parameters(request, MessageParameters).message_id
        async with self.pool.connection() as connection:
            found = await find_message(connection, message_id, folder=self.folder)
            if found is None:
                raise Problem(Code.NOT_FOUND, "no message has this id")
            document = message_json(found)
            if caller_of(request).has(Scope.PII):
                if found.unavailable is not None:
                    raise Problem(Code.BODY_UNAVAILABLE, found.unavailable)
                body = await open_body(connection, found, self.keyring)
                document |= body_json(body)
                if body is not None:
                    carrier_id = found.message.carrier_id
                    await record_reading(connection, request, call="message", target=f"message {message_id}", carrier_id=carrier_id)
        return answer(document, headers={hdrs.CACHE_CONTROL: "no-store"})


def routes(pool: Connections, keyring: Keyring, folder: Path | None) -> Sequence[Route]:
    """The call about messages. `folder` is where archived bodies are."""
    messages = Messages(pool, keyring, folder)
    return [
        Route(
            "GET",
            "/v1/messages/{message_id}",
            messages.show,
            operation(
                summary="Show a message",
                description="What became of one webhook and where its body is; with scope `pii` the body byte for byte, which is recorded.",
                scope="audit",
                tag="messages",
                parameters=MessageParameters,
                response=Message,
                problems=(Code.NOT_FOUND, Code.BODY_UNAVAILABLE),
            ),
        )
    ]
