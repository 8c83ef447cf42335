"""Settings of single carriers: an environment variable for each, by upper-case carrier id."""

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from pydantic import SecretStr

from events.carriers.carrier import Basic, ChosenAuthentication, SharedHeader, UrlToken
from events.parsing.times import is_zone
from events.parsing.zones import zone_row

# the name of a variable, not a secret
WEBHOOK_SECRET_PREFIX: Final = "STATESVC_WEBHOOK_SECRET_"  # noqa: S105
WEBHOOK_AUTH_PREFIX: Final = "STATESVC_WEBHOOK_AUTH_"
WEBHOOK_IPS_PREFIX: Final = "STATESVC_WEBHOOK_IPS_"
WEBHOOK_JWKS_PREFIX: Final = "STATESVC_WEBHOOK_JWKS_"
ZONE_PREFIX: Final = "STATESVC_CARRIER_ZONE_"
SIGNATURE_AGE_VARIABLE: Final = "STATESVC_INGRESS_SIGNATURE_AGE_SECONDS_MAX"
AUTHENTICATION_FORMS: Final = "header:NAME, bearer, basic, query:NAME"

# Each prefix, with the meaning of its variables.
CARRIER_VARIABLES: Final[Mapping[str, str]] = {
    WEBHOOK_SECRET_PREFIX: (
        "Secrets of a carrier's webhooks, comma-separated: two live ones during rotation."
    ),
    WEBHOOK_AUTH_PREFIX: (
        "What you agreed on with a carrier that leaves it to you, comma-separated:"
        f" {AUTHENTICATION_FORMS}. The secret is what the header or the query holds, of `basic` it"
        " is user:password. Default: query:token, or the carrier's own signature alone."
    ),
    WEBHOOK_IPS_PREFIX: (
        "Networks (CIDR, comma-separated) from which alone a carrier may push: the proof where it"
        " has no secret, else a second one."
    ),
    WEBHOOK_JWKS_PREFIX: "URL of the JSON Web Key Set with a carrier's public keys (shipengine).",
    ZONE_PREFIX: (
        "The zone of your parcels with a carrier, for local times of which nothing says where they"
        " are: an IANA name such as Asia/Ho_Chi_Minh, or the code of a country with one zone, such"
        " as VN. Default: the carrier's own, or UTC."
    ),
}

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_PARAMETER: Final = re.compile(r"[A-Za-z0-9._~-]{1,100}")
# Headers that every request has, or a proxy writes: no place for a secret.
_HEADERS_OF_ALL: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "date",
        "expect",
        "forwarded",
        "host",
        "te",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "via",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
    }
)

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class SettingError(ValueError):
    """A setting has an invalid value; the message names the setting and not the value."""


def split(text: str) -> tuple[str, ...]:
    """Split at commas, without blanks."""
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def read_webhook_secrets(environment: Mapping[str, str]) -> dict[str, tuple[SecretStr, ...]]:
    """Read `STATESVC_WEBHOOK_SECRET_<CARRIER>`, comma-separated, by upper-case carrier id."""
    return {
        name.removeprefix(WEBHOOK_SECRET_PREFIX): secrets
        for name, text in environment.items()
        if name.startswith(WEBHOOK_SECRET_PREFIX)
        and (secrets := tuple(SecretStr(part) for part in split(text)))
    }


def read_chosen_authentication(
    environment: Mapping[str, str],
) -> dict[str, tuple[ChosenAuthentication, ...]]:
    """Read `STATESVC_WEBHOOK_AUTH_<CARRIER>`, by upper-case carrier id.

    Raises SettingError, which never shows the value.
    """
    found: dict[str, tuple[ChosenAuthentication, ...]] = {}
    secrets = read_webhook_secrets(environment)
    for name, text in _of_prefix(environment, WEBHOOK_AUTH_PREFIX):
        variable, secret_variable = WEBHOOK_AUTH_PREFIX + name, WEBHOOK_SECRET_PREFIX + name
        found[name] = tuple(dict.fromkeys(_chosen(part, variable) for part in split(text)))
        # at the start, not at the first push: the carrier would only see refusals
        if not secrets.get(name):
            raise SettingError(
                f"{variable} is set, but {secret_variable} is not: nothing that the carrier sends"
                " could be right"
            )
        if found[name] == (Basic(),) and any(
            ":" not in secret.get_secret_value() for secret in secrets[name]
        ):
            raise SettingError(f"{secret_variable} must be user:password, for {variable} is basic")
    return found


def _chosen(text: str, variable: str) -> ChosenAuthentication:
    kind, colon, name = (part.strip() for part in text.partition(":"))
    chosen: ChosenAuthentication | None = None
    match kind.lower(), bool(colon):
        case "bearer", False:
            chosen = SharedHeader(header="Authorization", prefix="Bearer ")
        case "basic", False:
            chosen = Basic()
        case "header", True if _NAME.fullmatch(name):
            # a secret there would be compared with what a proxy wrote
            if name.lower() in _HEADERS_OF_ALL:
                raise SettingError(
                    f"{variable} names a header that every request has, or that a proxy writes:"
                    " choose another"
                )
            chosen = SharedHeader(header=name)
        case "query", True if _PARAMETER.fullmatch(name):
            chosen = UrlToken(parameter=name)
    if chosen is None:
        raise SettingError(
            f"{variable} must be one or more of {AUTHENTICATION_FORMS}, comma-separated"
        )
    return chosen


def read_webhook_networks(environment: Mapping[str, str]) -> dict[str, tuple[Network, ...]]:
    """Read `STATESVC_WEBHOOK_IPS_<CARRIER>`, comma-separated CIDRs, by upper-case carrier id.

    Raises SettingError.
    """
    found = {}
    for name, text in _of_prefix(environment, WEBHOOK_IPS_PREFIX):
        try:
            # not strict: carriers publish addresses with host bits set
            found[name] = tuple(ipaddress.ip_network(part, strict=False) for part in split(text))
        except ValueError:
            raise SettingError(
                f"{WEBHOOK_IPS_PREFIX}{name} must be networks such as 20.65.16.22/31,"
                " comma-separated"
            ) from None
    return found


def read_webhook_key_sets(environment: Mapping[str, str]) -> dict[str, str]:
    """Read `STATESVC_WEBHOOK_JWKS_<CARRIER>`, a URL, by upper-case carrier id.

    Raises SettingError.
    """
    found = dict(_of_prefix(environment, WEBHOOK_JWKS_PREFIX))
    for name, url in found.items():
        if not url.startswith("https://"):
            raise SettingError(
                f"{WEBHOOK_JWKS_PREFIX}{name} must be a https URL: anyone who can change the keys"
                " can sign"
            )
    return found


def read_account_zones(environment: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Read `STATESVC_CARRIER_ZONE_<CARRIER>` as IANA names, by upper-case carrier id.

    Raises SettingError.
    """
    return {
        name: read_zones(text, ZONE_PREFIX + name)
        for name, text in _of_prefix(environment, ZONE_PREFIX)
    }


def read_zones(text: str, variable: str) -> tuple[str, ...]:
    """Read the zones of an account, comma-separated. Raises SettingError."""
    return tuple(dict.fromkeys(_zone(part, variable) for part in split(text)))


def _zone(text: str, variable: str) -> str:
    """Read an IANA name, or the code of a country with a single zone. Raises SettingError."""
    # a country first: of IANA's names only the old `GB` and `NZ` have two letters
    row = zone_row(text.upper(), None) if len(text) == len("VN") else None
    if row is not None and not row.is_only:
        raise SettingError(f"{variable} names a country with several zones: name the zone")
    if row is not None:
        return row.zone.key
    if not is_zone(text):
        raise SettingError(
            f"{variable} must be a zone such as Asia/Ho_Chi_Minh or the code of a country, or"
            " several, comma-separated"
        )
    return text


def refuse_empty_proofs(
    environment: Mapping[str, str], *, allows_unsigned: Callable[[str], bool]
) -> None:
    """Refuse a carrier's variable without a proof (`","`). Raises SettingError.

    An empty text counts as unset, as everywhere; but not if the carrier would then be let in
    unsigned.
    """
    for name, text in sorted(environment.items()):
        prefix = next((each for each in CARRIER_VARIABLES if name.startswith(each)), None)
        # a zone proves nothing: without it the default applies, and no one is let in
        if prefix in (None, ZONE_PREFIX) or split(text):
            continue
        carrier_id = name.removeprefix(prefix).lower()
        # commas look set to a person, and would leave the carrier without its proof
        if text.strip():
            raise SettingError(f"{name} holds nothing but commas: set it, or unset it")
        if allows_unsigned(carrier_id):
            raise SettingError(
                f"{name} is empty, and STATESVC_ALLOW_UNSIGNED_WEBHOOKS lets {carrier_id} in"
                " unsigned: set it, or unset it if that is meant"
            )


def _of_prefix(environment: Mapping[str, str], prefix: str) -> Iterator[tuple[str, str]]:
    return (
        (name.removeprefix(prefix), text.strip())
        for name, text in environment.items()
        # an empty text counts as unset: compose files pass variables through that are not set
        if name.startswith(prefix) and text.strip()
    )
