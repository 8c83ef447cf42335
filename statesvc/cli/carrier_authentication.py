"""Authentication of each carrier, in words, and what an operator has yet to do about it: for `carriers`, `doctor` and the page.

Names settings, never what they hold.
"""

from collections.abc import Sequence
from typing import assert_never

from events.carriers.carrier import (
    Authentication,
    Basic,
    Carrier,
    FormFieldMd5,
    Hmac,
    OAuthToken,
    RsaSha256,
    Sha256Concat,
    Sha256InBody,
    SharedHeader,
    SignedWebToken,
    TimestampedHmac,
    UrlToken,
)
from statesvc.settings.carrier_settings import WEBHOOK_AUTH_PREFIX, WEBHOOK_JWKS_PREFIX, WEBHOOK_SECRET_PREFIX
from statesvc.settings.service_settings import Settings

_BODY_BINDING = (Hmac, Sha256Concat, Sha256InBody, FormFieldMd5, TimestampedHmac, RsaSha256)


def described(schemes: Sequence[Authentication]) -> list[str]:
    """Describe how a carrier proves who it is: any one is enough."""
    return list(dict.fromkeys(map(_described, schemes)))


def _described(scheme: Authentication) -> str:
    match scheme:
        case SignedWebToken():
            return f"web token (HS256) in {scheme.header}"
        case OAuthToken():
            return "bearer token fetched from us"
        case SharedHeader():
            return f"{scheme.prefix}secret in {scheme.header}"
        case Basic():
            return "basic authentication"
        case UrlToken():
            return f"?{scheme.parameter}="
        case _:
            return _described_signature(scheme)


def _described_signature(scheme: Hmac | Sha256Concat | Sha256InBody | FormFieldMd5 | TimestampedHmac | RsaSha256) -> str:
    match scheme:
        case Hmac():
            return f"HMAC-{scheme.algorithm.upper()} in {scheme.header}"
        case Sha256Concat():
            return f"SHA-256 of body and secret in {scheme.header}"
        case TimestampedHmac():
            return f"HMAC-SHA256 in {scheme.header}"
        case RsaSha256():
            return f"RSA-SHA256 in {scheme.signature_header}"
        case FormFieldMd5():
            return f"MD5 of {scheme.field} and secret in {scheme.header}"
        case Sha256InBody():
            return f"SHA-256 of {' and '.join(scheme.signed)} and secret in the body's {scheme.member}"
        case _:
            assert_never(scheme)


def accepted(carrier: Carrier, settings: Settings) -> tuple[Authentication, ...]:
    """Return the accepted schemes: any one is enough."""
    return carrier.schemes(settings.chosen_authentication.get(carrier.carrier_id.upper(), ()))


def binds_body(schemes: Sequence[Authentication]) -> bool:
    """Return whether what the carrier sends proves the body, and not the sender alone."""
    return bool(schemes) and all(isinstance(scheme, _BODY_BINDING) for scheme in schemes)


def secret_state(carrier: Carrier, settings: Settings) -> str:
    """Return whether it has a secret, in a word or two."""
    secrets = len(settings.webhook_secrets(carrier.carrier_id))
    if secrets:
        return "set" if secrets == 1 else f"{secrets} live"
    return "unsigned" if settings.ingress.allows_unsigned(carrier.carrier_id) and not settings.authenticates(carrier.carrier_id) else "none"


def open_points(carrier: Carrier, settings: Settings) -> list[str]:
    """Return what is left to do before a push of this carrier is proven as well as it can be; nothing where all is done."""
    name, schemes = carrier.carrier_id.upper(), accepted(carrier, settings)
    if not settings.authenticates(carrier.carrier_id):
        if settings.ingress.allows_unsigned(carrier.carrier_id):
            return [f"anyone may push: set {WEBHOOK_SECRET_PREFIX}{name}"]
        publishes_keys = any(isinstance(scheme, RsaSha256) and scheme.key_id_header for scheme in schemes)
        return [f"refused: set {WEBHOOK_SECRET_PREFIX}{name}" + (f" or {WEBHOOK_JWKS_PREFIX}{name}" if publishes_keys else "")]
    found = []
    if not settings.webhook_secrets(carrier.carrier_id) and name not in settings.webhook_key_sets:
        found.append(f"its address alone proves it: set {WEBHOOK_SECRET_PREFIX}{name}")
    elif carrier.leaves_choice and any(isinstance(scheme, UrlToken) for scheme in schemes):
        found.append(f"its secret may stand in the URL, which proxies log: agree on a header, and name it in {WEBHOOK_AUTH_PREFIX}{name}")
    return found
