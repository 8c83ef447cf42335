"""Authentication of each carrier, in words, with open tasks: for `carriers`, `doctor` and the page.

Names settings, never their values.
"""

from collections.abc import Sequence

from events.carriers.carrier import (
    Authentication,
    Carrier,
    FormFieldMd5,
    Hmac,
    RsaSha256,
    Sha256Concat,
    Sha256InBody,
    TimestampedHmac,
    UrlToken,
)
from statesvc.settings.carrier_settings import (
    WEBHOOK_AUTH_PREFIX,
    WEBHOOK_JWKS_PREFIX,
    WEBHOOK_SECRET_PREFIX,
)
from statesvc.settings.service_settings import Settings

_BODY_BINDING = (Hmac, Sha256Concat, Sha256InBody, FormFieldMd5, TimestampedHmac, RsaSha256)


def accepted(carrier: Carrier, settings: Settings) -> tuple[Authentication, ...]:
    """Return the accepted schemes: any of them is enough."""
    return carrier.schemes(settings.chosen_authentication.get(carrier.carrier_id.upper(), ()))


def binds_body(schemes: Sequence[Authentication]) -> bool:
    """Return whether the schemes prove the body, and not the sender alone."""
    return bool(schemes) and all(isinstance(scheme, _BODY_BINDING) for scheme in schemes)


def secret_state(carrier: Carrier, settings: Settings) -> str:
    secrets = len(settings.webhook_secrets(carrier.carrier_id))
    if secrets:
        return "set" if secrets == 1 else f"{secrets} live"
    return (
        "unsigned"
        if settings.ingress.allows_unsigned(carrier.carrier_id)
        and not settings.authenticates(carrier.carrier_id)
        else "none"
    )


def open_points(carrier: Carrier, settings: Settings) -> list[str]:
    """Return the steps left until pushes of this carrier are proven as well as possible."""
    name, schemes = carrier.carrier_id.upper(), accepted(carrier, settings)
    if not settings.authenticates(carrier.carrier_id):
        if settings.ingress.allows_unsigned(carrier.carrier_id):
            return [f"anyone may push: set {WEBHOOK_SECRET_PREFIX}{name}"]
        publishes_keys = any(
            isinstance(scheme, RsaSha256) and scheme.key_id_header for scheme in schemes
        )
        return [
            f"refused: set {WEBHOOK_SECRET_PREFIX}{name}"
            + (f" or {WEBHOOK_JWKS_PREFIX}{name}" if publishes_keys else "")
        ]
    found = []
    if not settings.webhook_secrets(carrier.carrier_id) and name not in settings.webhook_key_sets:
        found.append(f"its address alone proves it: set {WEBHOOK_SECRET_PREFIX}{name}")
    elif carrier.leaves_choice and any(isinstance(scheme, UrlToken) for scheme in schemes):
        found.append(
            "its secret may stand in the URL, which proxies log: agree on a header, and name it in"
            f" {WEBHOOK_AUTH_PREFIX}{name}"
        )
    return found
