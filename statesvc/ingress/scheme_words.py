"""Schemes of authentication in words: for whoever is refused, for `carriers` and for the page."""

from collections.abc import Sequence
from typing import assert_never

from events.carriers.carrier import (
    Authentication,
    Basic,
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


def described(schemes: Sequence[Authentication]) -> list[str]:
    """Describe the accepted schemes; any of them suffices."""
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


def _described_signature(
    scheme: Hmac | Sha256Concat | Sha256InBody | FormFieldMd5 | TimestampedHmac | RsaSha256,
) -> str:
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
            return (
                f"SHA-256 of {' and '.join(scheme.signed)} and secret in the body's {scheme.member}"
            )
        case _:
            assert_never(scheme)
