"""A carrier's prepared authentication: schemes with secrets, addresses, ACK, bounds.

Only listed headers are stored with a message: those that prove or identify the push, never a
credential.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, Self

import orjson
from aiohttp import web
from multidict import CIMultiDictProxy

from events.carriers.carrier import (
    Authentication,
    Carrier,
    Hmac,
    OAuthToken,
    RsaSha256,
    SharedHeader,
    SignedWebToken,
    TimestampedHmac,
)
from statesvc.http.problem import Code, Problem
from statesvc.ingress.authentication import Verifier
from statesvc.ingress.jwks import KeySet, KeysUnavailableError
from statesvc.ingress.scheme_words import described
from statesvc.ingress.signatures import is_signed
from statesvc.settings.carrier_settings import (
    SIGNATURE_AGE_VARIABLE,
    WEBHOOK_AUTH_PREFIX,
    WEBHOOK_IPS_PREFIX,
    WEBHOOK_SECRET_PREFIX,
)
from statesvc.settings.service_settings import Settings
from statesvc.telemetry.tracing import TRACEPARENT

_RETAINED: Final = (
    "content-type",
    "user-agent",
    "date",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "x-request-id",
    "x-correlation-id",
    "x-transaction-id",
    "x-event-id",
    "x-event-type",
    "x-event-name",
    "x-delivery-id",
    "x-webhook-id",
    "x-webhook-timestamp",
    "x-message-id",
    "x-timestamp",
    "x-topic",
    "shippo-auth-signature",
    "x-shipengine-rsa-sha256-key-id",
    "x-shipengine-rsa-sha256-signature",
    "x-shipengine-timestamp",
    "sign",
)
_NEVER: Final = frozenset(
    {"authorization", "proxy-authorization", "cookie", "set-cookie", "credential", "x-api-key"}
)
Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

FORWARDED: Final = "X-Forwarded-For"
_FORWARDED_ADDRESS: Final = re.compile(
    r"""(?P<quote>"?)(?:\[(?P<bracketed>[^\]]+)\](?::\d{1,5})?|(?P<v4>[\d.]+):\d{1,5}|(?P<bare>[^"\[\]]+))(?P=quote)"""
)


class RetainedHeaders:
    """The allow-list of a carrier: the general names and its signature headers."""

    def __init__(self, schemes: Iterable[Authentication]) -> None:
        schemes = list(schemes)
        signatures = [
            scheme.header.lower()
            for scheme in schemes
            if isinstance(scheme, Hmac | TimestampedHmac)
        ]
        secrets = {
            scheme.header.lower()
            for scheme in schemes
            if isinstance(scheme, SharedHeader | SignedWebToken)
        }
        self._names = tuple(
            name
            for name in dict.fromkeys([*_RETAINED, *signatures])
            # after all additions: no scheme may bring a credential into the stored headers
            if name not in _NEVER | secrets
        )

    def document(self, headers: CIMultiDictProxy[str], *, traceparent: str | None = None) -> str:
        """Return the retained headers as the text of a JSON object, names in lower case; with
        `traceparent` that of our own trace.
        """
        retained = {name: headers[name] for name in self._names if name in headers}
        if traceparent is not None:
            retained[TRACEPARENT] = traceparent
        try:
            return orjson.dumps(retained).decode()
        except orjson.JSONEncodeError:
            # bytes that are no UTF-8: stored as Latin-1, the charset of old HTTP
            return orjson.dumps({name: _latin(value) for name, value in retained.items()}).decode()


def _latin(value: str) -> str:
    return value.encode("utf-8", "surrogateescape").decode("latin-1")


@dataclass(frozen=True, slots=True, kw_only=True)
class CarrierAuthenticator:
    """`unsigned`: accepted without a secret, as long as the carrier has none.

    `networks`: only these addresses may push as the carrier. The list is the proof if the
    carrier has no secret; with a secret both are needed. `proxies`: those with a trusted
    `X-Forwarded-For`.
    """

    carrier: Carrier
    schemes: tuple[Authentication, ...]
    verifier: Verifier = field(repr=False)
    retained_headers: RetainedHeaders
    secrets: tuple[str, ...] = field(repr=False)
    unsigned: bool
    networks: Sequence[Network] = ()
    proxies: Sequence[Network] = ()
    key_set: KeySet | None = None

    @classmethod
    def build(cls, carrier: Carrier, settings: Settings) -> Self:
        secrets = settings.webhook_secrets(carrier.carrier_id)
        schemes = carrier.schemes(
            settings.chosen_authentication.get(carrier.carrier_id.upper(), ())
        )
        url = settings.webhook_key_sets.get(carrier.carrier_id.upper())
        return cls(
            carrier=carrier,
            schemes=schemes,
            verifier=Verifier(
                schemes, secrets, age_seconds_max=settings.ingress.signature_age_seconds_max
            ),
            retained_headers=RetainedHeaders(schemes),
            secrets=secrets,
            unsigned=not secrets
            and url is None
            and settings.ingress.allows_unsigned(carrier.carrier_id),
            networks=settings.webhook_networks.get(carrier.carrier_id.upper(), ()),
            proxies=settings.ingress.trusted_proxies,
            key_set=None
            if url is None
            else KeySet(url, allowed=settings.notifier.subscriber_allow),
        )

    @property
    def has_secret(self) -> bool:
        return bool(self.secrets)

    @property
    def issues_tokens(self) -> bool:
        """True if the carrier fetches its token from us."""
        return any(isinstance(scheme, OAuthToken) for scheme in self.schemes)

    def accepts_address(self, request: web.Request) -> bool:
        """Return False for an address from which the carrier does not push."""
        if not self.networks:
            return True
        address = sender_address(request, self.proxies)
        return address is not None and is_within(address, self.networks)

    def is_proven_by_head(self, request: web.Request) -> bool:
        """Return whether the body of an admitted request need not be read to know that the carrier
        sent it.
        """
        if self.unsigned or (self.networks and not self.secrets and self.key_set is None):
            return True
        return self.verifier.without_body(
            # the query is parsed only where a token may be in it
            request.headers,
            request.query if self.verifier.reads_query else {},
        )

    def may_be_proven_by_body(self, request: web.Request) -> bool:
        """Return False where no signature was sent that the body could prove."""
        return self.verifier.may_be_signed(request.headers, request.content_length) or any(
            scheme.signature_header in request.headers and scheme.key_id_header in request.headers
            for scheme in self._published()
        )

    async def is_proven_by_body(self, request: web.Request, body: bytes) -> bool:
        """Return whether a signature over the body fits. Raises Problem if its keys cannot be
        fetched now.
        """
        if self.verifier.with_body(request.headers, body):
            return True
        for scheme in self._published():
            key_id = request.headers.get(scheme.key_id_header)
            if key_id and self.key_set is not None:
                try:
                    key = await self.key_set.key(key_id)
                except KeysUnavailableError:
                    raise Problem(
                        Code.SIGNING_KEYS_UNAVAILABLE,
                        "the carrier's public keys can't be fetched now; send it again",
                    ) from None
                if key is not None and is_signed(
                    scheme, [key], request.headers, body, self.verifier.age
                ):
                    return True
        return False

    def refusal(self) -> Problem:
        """Return why it stays closed, for the operator who reads the carrier's error report."""
        name = self.carrier.carrier_id.upper()
        variable = WEBHOOK_SECRET_PREFIX + name
        if self.networks:
            detail = (
                f"the address is not in {WEBHOOK_IPS_PREFIX}{name},"
                f" or no signature or credential fits {variable}"
            )
            return Problem(
                Code.BAD_SIGNATURE, f"{detail}. An API key with scope `ingest` is taken too"
            )
        if self.secrets or self.key_set is not None:
            chosen = f" and {WEBHOOK_AUTH_PREFIX}{name}" if self.carrier.leaves_choice else ""
            detail = (
                f"no signature or credential fits: {self.carrier.name} sends"
                f" {' or '.join(described(self.schemes))}; it is checked with"
                f" {variable}{chosen}, on the bytes as sent{self._bound_of_age()}"
            )
            return Problem(
                Code.BAD_SIGNATURE, f"{detail}. An API key with scope `ingest` is taken too"
            )
        return Problem(
            Code.UNSIGNED_CARRIER,
            f"set {variable} to the secret shared with this carrier,"
            " or push with an API key of scope `ingest`",
        )

    def _bound_of_age(self) -> str:
        if not any(isinstance(scheme, RsaSha256 | TimestampedHmac) for scheme in self.schemes):
            return ""
        return f", and may not be older than {SIGNATURE_AGE_VARIABLE} says"

    def _published(self) -> list[RsaSha256]:
        if self.key_set is None:
            return []
        return [
            scheme
            for scheme in self.schemes
            if isinstance(scheme, RsaSha256) and scheme.key_id_header
        ]


class Authenticators(Mapping[str, CarrierAuthenticator]):
    """The authenticators by carrier id, each built, and its carrier imported, at its first push."""

    def __init__(self, carriers: Mapping[str, Carrier], settings: Settings) -> None:
        self._carriers = carriers
        self._settings = settings
        self._built: dict[str, CarrierAuthenticator] = {}

    def __getitem__(self, carrier_id: str) -> CarrierAuthenticator:
        built = self._built.get(carrier_id)
        if built is None:
            built = CarrierAuthenticator.build(self._carriers[carrier_id], self._settings)
            self._built[carrier_id] = built
        return built

    def __iter__(self) -> Iterator[str]:
        return iter(self._carriers)

    def __len__(self) -> int:
        return len(self._carriers)


def sender_address(request: web.Request, proxies: Sequence[Network]) -> Address | None:
    """Return the sender's address past the trusted `proxies`; None: not stated, or malformed.

    A trusted proxy's `X-Forwarded-For` is read from its end: text before the first untrusted
    address was written by the sender itself.
    """
    chain = [
        part.strip()
        for header in request.headers.getall(FORWARDED, ())
        for part in header.split(",")
    ]
    here = _address(request.remote or "")
    while here is not None and chain and is_within(here, proxies):
        here = _forwarded_address(chain.pop())
    return here


def is_within(address: Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks)


def _forwarded_address(text: str) -> Address | None:
    """Parse an address as proxies write it: bare, quoted, in brackets, and with the port."""
    found = _FORWARDED_ADDRESS.fullmatch(text)
    return None if found is None else _address(found["bracketed"] or found["v4"] or found["bare"])


def _address(text: str) -> Address | None:
    """Parse an address; an IPv4 address inside an IPv6 address is the IPv4 address."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address
