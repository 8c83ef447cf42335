"""A row of the table `CARRIERS`: a carrier's authentication, ACK and normalizer.

Plain data: verifying a signature is `statesvc.ingress.authentication`, choosing a version is the
claim's.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal, Self

from events.event import Normalized, Raw
from events.parsing.meanings import Meaning
from events.parsing.times import in_account

# `(body, received_at) -> Normalized`; pure; raises only `UnreadableMessageError`.
Normalizer = Callable[[bytes, datetime], Normalized]

# Reading of a scan by its raw fields alone, as the stable normalizer has it. None where they do not
# decide (a text, a rollup, a route did).
Reread = Callable[[Raw], Meaning | None]


# the default, so that a module without codes need not say so
def nothing_by_raw_fields(_raw: Raw) -> None:
    """Return None: the carrier prints no codes, only text, which is sealed with the event."""


MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Hmac:
    """HMAC over the raw body, compared with a header.

    `prefix` precedes the digest in the header (`hmac-sha256-hex=`). `nfkd` normalises the
    secret first (EasyPost).
    """

    header: str
    algorithm: Literal["sha256", "sha1", "sha512"] = "sha256"
    encoding: Literal["hex", "base64"] = "hex"
    prefix: str = ""
    nfkd: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sha256Concat:
    """Plain SHA-256 over the raw body, `separator` and the secret, as hex in a header
    (17TRACK's `sign`): no HMAC.
    """

    header: str
    separator: str = "/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sha256InBody:
    """Plain SHA-256 over members of the JSON body as they are sent, then the secret, stated by
    another member as hex (17TRACK v1).

    Of a text member its value counts, of any other the bytes that stand in the body. A body
    must be read before anyone is known to have sent it, so it has a bound of its own, and its
    object but few members.
    """

    member: str = "sign"
    signed: tuple[str, ...] = ("event", "data")
    separator: str = "/"
    body_bytes_max: int = 128 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FormFieldMd5:
    """MD5 over the value of a form field, then the secret, as base64 in a header (J&T Express): no
    HMAC, and no stronger than MD5.
    """

    header: str
    field: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestampedHmac:
    """HMAC-SHA256 over a stamp of time, a dot and the raw body.

    Without `stamp_header` the header holds both (`t=1700000000,v1=<hex>`, Shippo), else the digest
    alone (InPost). The stamp's age is bounded (`STATESVC_INGRESS_SIGNATURE_AGE_SECONDS_MAX`).
    """

    header: str
    stamp_header: str = ""
    encoding: Literal["hex", "base64"] = "hex"


@dataclass(frozen=True, slots=True, kw_only=True)
class RsaSha256:
    """RSA PKCS#1 v1.5 with SHA-256, in base64.

    Over a timestamp, a dot and the raw body (ShipEngine), or the body alone (InPost). A
    timestamp's age is bounded. The secret is the carrier's public key or certificate: the
    base64 of its DER, with or without the lines of PEM around it. It is not secret, so the
    schemes that compare secrets never accept it.
    """

    signature_header: str
    timestamp_header: str = ""
    key_id_header: str = ""
    """Names the key where the carrier publishes its keys as a key set
    (`STATESVC_WEBHOOK_JWKS_<CARRIER>`).
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedWebToken:
    """A JSON web token (RFC 7519, HS256 only) in a header, signed with the secret (Easyship).

    It binds the sender, and a time limit if it names one, but no body: it is worth as much as a
    static secret that is not sent itself.
    """

    header: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedHeader:
    """A static secret in a header (UPS `credential`); `prefix` such as `Bearer ` comes before
    it.
    """

    header: str
    prefix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthToken:
    """`Authorization: Bearer` with a token that the carrier fetched from us (UPS); the secret is
    `client_id:client_secret`.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Basic:
    """HTTP basic authentication; the secret is `user:password`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlToken:
    """A static secret in the query string."""

    parameter: str = "token"


ChosenAuthentication = SharedHeader | Basic | UrlToken
Authentication = (
    ChosenAuthentication
    | Hmac
    | Sha256Concat
    | Sha256InBody
    | FormFieldMd5
    | TimestampedHmac
    | RsaSha256
    | SignedWebToken
    | OAuthToken
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShipperChoice:
    """The shipper and the carrier agree on the authentication (`STATESVC_WEBHOOK_AUTH_<CARRIER>`).

    `default` holds without that setting: the URL is the shipper's own at every carrier. Where a
    carrier signs, there is no default.
    """

    default: tuple[ChosenAuthentication, ...] = (UrlToken(),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """The answer that the carrier takes for a yes.

    `body` None: our own JSON with the message id.
    """

    status: int = 200
    content_type: str = "application/json"
    body: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """A carrier or aggregator that may push to us.

    `authentication`: success of any of the schemes is enough.
    """

    carrier_id: str
    name: str
    normalizers: Mapping[str, Normalizer]
    """Version -> code. A version that has read messages in production stays."""
    formats: tuple[str, ...]
    authentication: tuple[Authentication | ShipperChoice, ...]
    # set by the release, so that an upgrade alone never changes how a message is read
    stable: str = "1"
    """The version for messages that no rollout gives to a candidate."""
    reread: Reread = nothing_by_raw_fields
    """For events of messages that can no longer be opened; never used for a correction."""
    number_fields: tuple[str, ...] = ()
    """Fields in which its messages print numbers (`events.parsing.named_numbers`)."""
    texts: frozenset[str] = frozenset()
    """The texts that the tables know in place of a code."""
    # a carrier that does not get its own form of yes pushes the message again
    ack: Ack = field(default_factory=Ack)
    body_bytes_max: int = MIB
    account_zones: tuple[str, ...] = ()
    """IANA names of the zones of the account, for times without any other zone than the default.

    A setting of the installation.
    """

    def in_zones(self, *zones: str) -> Self:
        """Return the carrier for an account with parcels in these zones, mostly in the first.

        Event ids do not change: local times count by their wall clock.
        """
        return replace(self, account_zones=zones)

    def read(self, body: bytes, received_at: datetime, version: str | None = None) -> Normalized:
        """Read a body in the zones of the account. Raises `UnreadableMessageError`.

        `version` of the code; default: the stable version.
        """
        normalized = self.normalizers[version or self.stable](body, received_at)
        # most installations set none: the readings are not copied then
        if not self.account_zones:
            return normalized
        readings = tuple(
            # after the normalizer: its code is the same for every account, and its version stays
            replace(reading, time=in_account(reading.time, reading.place, self.account_zones))
            for reading in normalized.readings
        )
        return replace(normalized, readings=readings)

    def recorded_version(self, version: str) -> str:
        """Return the version that the log records as the reader of a message: with the zones of the
        account (`1+zAsia/Ho_Chi_Minh`).
        """
        # the zones change the reading as a new version would, so a dry run can find what differs
        return f"{version}+z{','.join(self.account_zones)}" if self.account_zones else version

    @property
    def leaves_choice(self) -> bool:
        """True if the shipper chooses the authentication."""
        return any(isinstance(scheme, ShipperChoice) for scheme in self.authentication)

    def schemes(self, chosen: Sequence[ChosenAuthentication] = ()) -> tuple[Authentication, ...]:
        """Return the accepted schemes, given the shipper's choice."""
        found: list[Authentication] = []
        for scheme in self.authentication:
            if isinstance(scheme, ShipperChoice):
                # the shipper's choice replaces the default: an URL token must not stay open beside
                # it
                found += chosen or scheme.default
            else:
                found.append(scheme)
        return tuple(found)
