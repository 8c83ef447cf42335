"""`POST /v1/webhooks/{carrier_id}/oauth/token`: a carrier fetches a bearer token with its client
credentials (RFC 6749, section 4.4).

The credentials are a secret of the carrier in the form `client_id:client_secret`. Errors have the
form of the RFC, because the carrier's program reads them, plus the members of a problem.
"""

import base64
import binascii
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, NotRequired
from urllib.parse import parse_qs, unquote_plus

import orjson
from aiohttp import hdrs, web
from typing_extensions import TypedDict

from statesvc.http.operation import Operation, Route, operation
from statesvc.http.problem import CONTENT_TYPE, OK, Code, Problem
from statesvc.ingress.authentication import TOKEN_SECONDS, issue
from statesvc.ingress.body_memory import MemoryBound
from statesvc.ingress.carrier_authenticator import Authenticators, CarrierAuthenticator
from statesvc.ingress.request_body import check_head, read_body

BODY_BYTES_MAX: Final = 4096
FIELDS_MAX: Final = 16

_NO_CHALLENGE: Final[Mapping[str, str]] = {}
_CHALLENGE: Final[Mapping[str, str]] = {hdrs.WWW_AUTHENTICATE: 'Basic realm="webhooks"'}
_NO_STORE: Final[Mapping[str, str]] = {hdrs.CACHE_CONTROL: "no-store", hdrs.PRAGMA: "no-cache"}


class TokenRequest(TypedDict):
    """RFC 6749, section 4.4.2."""

    grant_type: NotRequired[Literal["client_credentials"]]
    client_id: NotRequired[str]
    client_secret: NotRequired[str]


class Tokens:
    """The handler for all carriers."""

    def __init__(
        self,
        authenticators: Authenticators,
        *,
        memory: MemoryBound,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._authenticators = authenticators
        self._memory = memory
        self._now = now

    def routes(self) -> Sequence[Route]:
        contract: Operation[None] = operation(
            operation_id="issue_webhook_token",
            summary="Issue a token for a carrier's webhooks",
            description="OAuth 2.0 client credentials: `grant_type=client_credentials` as a form, the"
            " credentials by HTTP basic "
            "authentication or as `client_id` and `client_secret`. They are a secret of the"
            " carrier, `client_id:client_secret`.",
            scope=None,
            carrier_authenticated=True,
            tag="pushes",
            accepts={"application/x-www-form-urlencoded": TokenRequest},
            statuses={
                OK: "`access_token`, for `Authorization: Bearer` on the carrier's webhooks, and"
                " `expires_in` in seconds"
            },
            problems=(
                Code.UNKNOWN_CARRIER,
                Code.UNSIGNED_CARRIER,
                Code.BAD_SIGNATURE,
                Code.BAD_REQUEST,
                Code.TOO_LARGE,
            ),
            problem_types=(CONTENT_TYPE, "application/json"),
            checked=False,
            deadline_seconds=None,
        )
        return [Route("POST", "/v1/webhooks/{carrier_id}/oauth/token", self.issue_token, contract)]

    async def issue_token(self, request: web.Request) -> web.Response:
        authenticator = self._authenticators.get(request.match_info["carrier_id"])
        if authenticator is None or not authenticator.issues_tokens:
            raise Problem(Code.UNKNOWN_CARRIER, "no carrier of this id fetches tokens")
        if not authenticator.has_secret:
            raise authenticator.refusal()
        check_head(request, bytes_max=BODY_BYTES_MAX)
        body, held = await read_body(request, bytes_max=BODY_BYTES_MAX, memory=self._memory)
        held.release()
        form = _form(body.content)
        grant_type = form.get("grant_type", "client_credentials")
        if grant_type != "client_credentials":
            return _error(Code.BAD_REQUEST, "unsupported_grant_type")
        credentials = _basic(request.headers.get(hdrs.AUTHORIZATION, "")) or (
            form.get("client_id", ""),
            form.get("client_secret", ""),
        )
        token = self._token(authenticator, request, *credentials)
        if token is None:
            return _error(Code.BAD_SIGNATURE, "invalid_client", _CHALLENGE)
        document = {"access_token": token, "token_type": "Bearer", "expires_in": TOKEN_SECONDS}
        return web.Response(
            body=orjson.dumps(document), content_type="application/json", headers=_NO_STORE
        )

    def _token(
        self,
        authenticator: CarrierAuthenticator,
        request: web.Request,
        client_id: str,
        client_secret: str,
    ) -> str | None:
        if not authenticator.accepts_address(request):
            return None
        return issue(client_id, client_secret, secrets=authenticator.secrets, now=self._now())


def _form(body: bytes) -> dict[str, str]:
    """Parse the form's fields; the first value of a repeated field."""
    try:
        fields = parse_qs(
            body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=FIELDS_MAX
        )
    except ValueError:
        raise Problem(
            Code.BAD_REQUEST, f"a request for a token has at most {FIELDS_MAX} fields"
        ) from None
    return {name: values[0] for name, values in fields.items()}


def _basic(header: str) -> tuple[str, str] | None:
    """Parse Basic credentials; the RFC has both parts encoded as in a form before they are
    joined.
    """
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        client_id, colon, client_secret = (
            base64.b64decode(encoded.strip().encode("ascii"), validate=True)
            .decode("utf-8")
            .partition(":")
        )
    except (binascii.Error, UnicodeError):
        return None
    return (unquote_plus(client_id), unquote_plus(client_secret)) if colon else None


def _error(code: Code, error: str, challenge: Mapping[str, str] = _NO_CHALLENGE) -> web.Response:
    headers: dict[str, str] = {**_NO_STORE, **challenge}
    problem = Problem(code, f"{error}: RFC 6749, section 5.2", members={"error": error})
    return web.Response(
        body=orjson.dumps(problem.document()),
        status=problem.status,
        content_type="application/json",
        headers=headers,
    )
