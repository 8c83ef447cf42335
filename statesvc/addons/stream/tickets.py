"""`POST /v1/stream/tickets`: access to a selection of the stream for a minute, in a URL.

A browser's EventSource sends no `Authorization`, and an API key has no place in a page. So the
page's own server, which has the key, fetches a ticket for it. It opens streams until it expires, or
until its key is revoked; an open stream goes on.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final
from urllib.parse import urlencode

from aiohttp import web
from pydantic import AwareDatetime, Field
from typing_extensions import TypedDict

from statesvc.api import kit
from statesvc.api.transition_operations import TransitionChoice
from statesvc.http.keys.api_keys import Caller, Keys
from statesvc.http.keys.key_store import Scope
from statesvc.http.keys.signed_token import TokenRefusedError, TokenSigner
from statesvc.http.operation import Credential

TICKET_SECONDS: Final = 60
PATH: Final = "/v1/stream"
_PURPOSE: Final = "stream"
_TICKET: Final = "ticket"


class TicketRequest(TransitionChoice):
    """Transitions that the ticket is good for."""


class StreamTicket(TypedDict):
    """A ticket, and where it is used."""

    ticket: str
    path: Annotated[
        str,
        Field(
            description=(
                "For EventSource: the stream with the ticket. Append `&after=<id>` to go on from an"
                " event."
            )
        ),
    ]
    expires_at: Annotated[
        AwareDatetime, Field(description="Opens no stream from then on; one that is open goes on.")
    ]


@dataclass(frozen=True, slots=True)
class Tickets:
    """Issues and checks tickets."""

    signer: TokenSigner

    def ticket(self, caller: Caller, wanted: TicketRequest) -> StreamTicket:
        """Make a ticket in the name of the caller's key."""
        expires_at = datetime.now(UTC) + timedelta(seconds=TICKET_SECONDS)
        claims = {"key_id": caller.key_id, "carriers": wanted.carrier_id, "statuses": wanted.status}
        ticket = self.signer.sign(_PURPOSE, claims, expires_at=expires_at)
        return {
            "ticket": ticket,
            "path": f"{PATH}?{urlencode({_TICKET: ticket})}",
            "expires_at": expires_at,
        }

    async def bearer(self, request: web.Request, keys: Keys) -> Caller | None:
        """Return the holder of the key that made the request's ticket; None without a ticket.

        Raises the problem 401.
        """
        ticket = request.query.get(_TICKET)
        if ticket is None:
            return None
        try:
            caller = await keys.by_id(self.signer.read(_PURPOSE, ticket)["key_id"])
        except TokenRefusedError as error:
            raise _refused(str(error)) from None
        # asked anew: the key may have been revoked since the ticket was made
        if caller is None or not caller.has(Scope.READ):
            raise _refused("the key that made it is good no more")
        return caller

    def selection(self, ticket: str) -> TransitionChoice:
        """Return the selection of a ticket that `bearer` has accepted."""
        claims = self.signer.read(_PURPOSE, ticket)
        return TransitionChoice(carrier_id=claims["carriers"], status=claims["statuses"])

    @property
    def credential(self) -> Credential:
        """A ticket in place of a key."""
        scheme = {
            "type": "apiKey",
            "in": "query",
            "name": _TICKET,
            "description": "Of `POST /v1/stream/tickets`.",
        }
        return Credential(name=_TICKET, scheme=scheme, caller=self.bearer)


@kit.operation(
    f"POST {PATH}/tickets",
    description=(
        f"Good for {TICKET_SECONDS} s, for this selection of the stream and nothing else. Fetch it"
        " on your server, give it to the page: `new EventSource(path)`. When the page has to come"
        " back later, it asks your server for the next ticket and appends `&after=` with the last"
        " id that it has."
    ),
    scope="read",
    tag="log",
    is_body_optional=True,
    statuses={kit.CREATED: "made"},
)
async def create_stream_ticket(
    context: kit.Context, call: kit.Call[None, TicketRequest]
) -> StreamTicket:
    """Create a ticket for a browser's EventSource."""
    keyring = await context.keyring()
    return Tickets(TokenSigner(keyring.token_key)).ticket(call.caller, call.body)


def _refused(why: str) -> kit.Problem:
    return kit.Problem(
        kit.Code.UNAUTHENTICATED,
        f"the ticket opens no stream: {why}; get a new one by POST {PATH}/tickets",
    )


OPERATIONS: Final = (create_stream_ticket,)
