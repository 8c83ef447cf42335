"""`POST /v1/subscriptions/portal-links`: a link that opens the portal of an owner's subscriptions.

The operator gives it to a subscriber without a key. The link holds the owner, its expiry, and
whether answers are shown; it is good while the key that made it is, and may see that owner's
subscriptions.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final
from urllib.parse import urlencode

from pydantic import AwareDatetime, Field
from typing_extensions import TypedDict

from events.crypto.keyring import Keyring
from events.entry.kinds import rfc3339
from statesvc.api import kit
from statesvc.database.pool import Connections
from statesvc.http.keys.api_keys import Caller, Keys, key_holder, require_scope
from statesvc.http.keys.key_store import Scope, owner_called
from statesvc.http.keys.signed_token import TokenRefusedError, TokenSigner
from statesvc.log.actions import record_action

PORTAL: Final = "/portal"
# The parameter of the query that has the token.
LINK: Final = "link"
MINUTES_MAX: Final = 60
_PURPOSE: Final = "portal"
# Beginning of the caller's id if a command makes the call in its own process. A key's id is
# hexadecimal digits.
_COMMAND: Final = "cli"


class PortalLinkRequest(kit.ClosedModel):
    """Owner of the subscriptions, how long the link lasts, how much of them it shows."""

    owner: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=200,
            description=(
                "Owner, or the name of its key; left out: the calling key's own. Another one takes"
                " the scope `ops`."
            ),
        ),
    ] = None
    minutes: Annotated[int, Field(ge=1, le=MINUTES_MAX, description="How long it is good.")] = 15
    responses: Annotated[
        bool,
        Field(
            description=(
                "It shows what the receiver answered, which may repeat personal data: takes the"
                " scope `pii`."
            )
        ),
    ] = False


class PortalLinkMade(TypedDict):
    """A link."""

    path: Annotated[
        str,
        Field(
            description="Put the address before it at which your subscribers reach this service."
        ),
    ]
    owner: str
    expires_at: Annotated[AwareDatetime, Field(description="The link and what it opened end then.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PortalVisit:
    """Access that a link grants.

    `caller` may manage only the owner's subscriptions; `token`: of the link.
    """

    token: str
    caller: Caller
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class PortalLinks:
    pool: Connections
    keyring: Keyring

    async def visit(self, token: str, keys: Keys) -> PortalVisit:
        """Return the present access of a link's token. Raises the problem 401."""
        try:
            claims = self._signer.read(_PURPOSE, token)
        except TokenRefusedError as error:
            raise _refused(str(error)) from None
        key_id, owner = claims["key_id"], claims["owner"]
        if key_id.startswith(_COMMAND):
            # made on the service's own machine, by no key that could be revoked: it ends with its
            # time
            maker: Caller | None = key_holder(
                key_id, name=key_id, owner=owner, scopes=frozenset({Scope.ADMIN})
            )
        else:
            # asked at each visit: a revoked key takes its links with it
            maker = await keys.by_id(key_id)
        if (
            maker is None
            or not maker.has(Scope.SUBSCRIPTIONS)
            # once more, for the key may have lost the scope since
            or (owner != maker.owner and not maker.has(Scope.OPS))
        ):
            raise _refused("the key that made it may not do so any more")
        scopes = {Scope.SUBSCRIPTIONS} | (
            # both: the link says what was meant, the key what may be
            {Scope.PII} if claims["responses"] and maker.has(Scope.PII) else set()
        )
        return PortalVisit(
            token=token,
            # the log says that it was done in the portal, not by the holder of the key
            caller=key_holder(
                f"{maker.key_id}/portal", name=owner, owner=owner, scopes=frozenset(scopes)
            ),
            expires_at=datetime.fromisoformat(claims["until"]),
        )

    @property
    def _signer(self) -> TokenSigner:
        return TokenSigner(self.keyring.token_key)


@kit.operation(
    "POST /v1/subscriptions/portal-links",
    scope="subscriptions",
    tag="subscriptions",
    is_body_optional=True,
    statuses={kit.CREATED: "made"},
    commands=(
        kit.Command(
            name="subscriptions portal",
            summary="make a link that opens the portal of an owner's subscriptions",
            arguments=("owner",),
            view=kit.Sentences(
                "{path}\nPut your address before it. It opens the subscriptions of {owner} until"
                " {expires_at}."
            ),
        ),
    ),
    forms=(
        kit.Form(
            path="/console/portal-link",
            title="A link for a subscriber",
            button="Make the link",
            fields=("owner", "minutes", "responses"),
            would=kit.Sentences(
                "A link is made that opens the portal of this owner's subscriptions without a key,"
                " until it expires. Send it as a password."
            ),
            view=kit.Sentences("Put your address before it, good until {expires_at}: {path}"),
            then="/console/subscriptions",
        ),
    ),
)
async def create_portal_link(
    context: kit.Context, call: kit.Call[None, PortalLinkRequest]
) -> PortalLinkMade:
    """Create a link to the portal of an owner's subscriptions.

    For a subscriber without a key: attempts and answers, replay, a test, pause, a new secret;
    of this owner's subscriptions alone, until the link expires or the key that made it is
    revoked. Anyone with the link may do so: send it as you would send a password.
    """
    wanted, caller = call.body, call.caller
    owner = caller.owner
    if wanted.owner is not None:
        async with context.pool.connection() as connection:
            try:
                owner = await owner_called(connection, wanted.owner)
            except ValueError as error:
                raise kit.Problem(kit.Code.INVALID_REQUEST, str(error)) from None
    # after the name is resolved: a key may name its own owner without the scope
    if owner != caller.owner:
        require_scope(caller, Scope.OPS)
    if wanted.responses:
        require_scope(caller, Scope.PII)
    expires_at = datetime.now(UTC) + timedelta(minutes=wanted.minutes)
    claims = {
        "key_id": caller.key_id,
        "owner": owner,
        "responses": wanted.responses,
        "until": rfc3339(expires_at),
    }
    details = {"expires_at": rfc3339(expires_at), "responses": wanted.responses}
    signer = TokenSigner((await context.keyring()).token_key)
    async with context.pool.connection() as connection, connection.transaction():
        await record_action(
            connection,
            actor=caller.actor,
            verb="portal.link",
            target=f"owner {owner}",
            details=details,
        )
    # after the entry: no link exists that the log does not know
    query = {LINK: signer.sign(_PURPOSE, claims, expires_at=expires_at)}
    return {"path": f"{PORTAL}?{urlencode(query)}", "owner": owner, "expires_at": expires_at}


OPERATIONS: Final = (create_portal_link,)


def _refused(why: str) -> kit.Problem:
    return kit.Problem(
        kit.Code.UNAUTHENTICATED,
        f"this link opens nothing: {why}. Ask for a new one where you had it from",
    )
