"""Signatures with a carrier's RSA key: the operator sets it, as key or certificate, or the carrier
publishes it (`jwks`).
"""

import base64
import binascii
from collections.abc import Mapping, Sequence

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key
from cryptography.x509 import load_der_x509_certificate

from events.carriers.carrier import RsaSha256
from statesvc.ingress.signature_age import SignatureAge


def is_signed(
    scheme: RsaSha256,
    keys: Sequence[RSAPublicKey],
    headers: Mapping[str, str],
    body: bytes,
    age: SignatureAge,
) -> bool:
    """Return whether a key made the signature, recently enough."""
    stamp = headers.get(scheme.timestamp_header, "").strip() if scheme.timestamp_header else None
    if stamp == "":
        return False
    try:
        signature = base64.b64decode(
            _bytes(headers.get(scheme.signature_header, "").strip()), validate=True
        )
    except binascii.Error:
        return False
    signed = body if stamp is None else _bytes(stamp) + b"." + body
    return any(_is_signed_by(key, signature, signed) for key in keys) and (
        stamp is None or age.is_accepted(stamp)
    )


def public_key(secret: str) -> RSAPublicKey | None:
    """Return the RSA key of a key or certificate text.

    None for another text, which then fits no signature.
    """
    lines = (line.strip() for line in secret.strip().splitlines())
    try:
        der = base64.b64decode(
            _bytes("".join(line for line in lines if not line.startswith("-----")))
        )
        key = _certified_key(der) or load_der_public_key(der)
    except (ValueError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, RSAPublicKey) else None


def _certified_key(der: bytes) -> CertificatePublicKeyTypes | None:
    """Return the certified key. The operator who chose it answers for its validity."""
    try:
        return load_der_x509_certificate(der).public_key()
    except ValueError:
        return None


def _is_signed_by(key: RSAPublicKey, signature: bytes, signed: bytes) -> bool:
    try:
        key.verify(signature, signed, PKCS1v15(), SHA256())
    except InvalidSignature:
        return False
    return True


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
