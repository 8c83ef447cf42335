"""What the environment says of single carriers: one variable for each, by upper-case carrier id."""

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from pydantic import SecretStr

WEBHOOK_SECRET_PREFIX: Final = "STATESVC_WEBHOOK_SECRET_"  # noqa: S105 - the name of a variable, not a secret
WEBHOOK_IPS_PREFIX: Final = "STATESVC_WEBHOOK_IPS_"
WEBHOOK_JWKS_PREFIX: Final = "STATESVC_WEBHOOK_JWKS_"

CARRIER_VARIABLES: Final[Mapping[str, str]] = {
    WEBHOOK_SECRET_PREFIX: "Secrets of a carrier's webhooks, comma-separated: two live ones during rotation.",
    WEBHOOK_IPS_PREFIX: (
        "Networks (CIDR, comma-separated) from which alone a carrier may push: the proof where it has no secret, else a second one."
    ),
    WEBHOOK_JWKS_PREFIX: "URL of the JSON Web Key Set with a carrier's public keys (shipengine).",
}
"""Each prefix, and what the variables that begin with it mean."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class SettingError(ValueError):
    """A variable of one carrier holds what it must not; the message names it and not its value."""


def split(text: str) -> tuple[str, ...]:
    """The parts between commas, without blanks."""
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def read_webhook_secrets(environment: Mapping[str, str]) -> dict[str, tuple[SecretStr, ...]]:
    """`STATESVC_WEBHOOK_SECRET_<CARRIER>`, comma-separated, by upper-case carrier id."""
    return {
        name.removeprefix(WEBHOOK_SECRET_PREFIX): secrets
        for name, text in environment.items()
        if name.startswith(WEBHOOK_SECRET_PREFIX) and (secrets := tuple(SecretStr(part) for part in split(text)))
    }


def read_webhook_networks(environment: Mapping[str, str]) -> dict[str, tuple[Network, ...]]:
    """`STATESVC_WEBHOOK_IPS_<CARRIER>`, comma-separated CIDRs, by upper-case carrier id. Raises SettingError."""
    found = {}
    for name, text in _of_prefix(environment, WEBHOOK_IPS_PREFIX):
        try:
            found[name] = tuple(ipaddress.ip_network(part, strict=False) for part in split(text))
        except ValueError:
            raise SettingError(f"{WEBHOOK_IPS_PREFIX}{name} must be networks such as 20.65.16.22/31, comma-separated") from None
    return found


def read_webhook_key_sets(environment: Mapping[str, str]) -> dict[str, str]:
    """`STATESVC_WEBHOOK_JWKS_<CARRIER>`, a URL, by upper-case carrier id. Raises SettingError."""
    found = dict(_of_prefix(environment, WEBHOOK_JWKS_PREFIX))
    for name, url in found.items():
        if not url.startswith("https://"):
            raise SettingError(f"{WEBHOOK_JWKS_PREFIX}{name} must be a https URL: anyone who can change the keys can sign")
    return found


def refuse_empty_proofs(environment: Mapping[str, str], *, allows_unsigned: Callable[[str], bool]) -> None:
    """A carrier's variable that is set and holds nothing (`","`) protects nothing. Raises SettingError.

    An empty text counts as unset, as everywhere; but not where the carrier would then be let in unsigned.
    """
    for name, text in sorted(environment.items()):
        prefix = next((each for each in CARRIER_VARIABLES if name.startswith(each)), None)
        if prefix is None or split(text):
            continue
        carrier_id = name.removeprefix(prefix).lower()
        if text.strip():
            raise SettingError(f"{name} holds nothing but commas: set it, or unset it")
        if allows_unsigned(carrier_id):
            raise SettingError(
                f"{name} is empty, and STATESVC_ALLOW_UNSIGNED_WEBHOOKS lets {carrier_id} in unsigned: set it, or unset it if that is meant"
            )


def _of_prefix(environment: Mapping[str, str], prefix: str) -> Iterator[tuple[str, str]]:
    return ((name.removeprefix(prefix), text.strip()) for name, text in environment.items() if name.startswith(prefix) and text.strip())
