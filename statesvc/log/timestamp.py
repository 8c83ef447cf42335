"""RFC 3161 time stamps of signed heads: an outside authority confirms a note and its time. Pure.

The stamped bytes are those of the published note: `openssl ts -verify -data NOTE -in TOKEN -CAfile
ROOT` checks the stamp too.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm

if TYPE_CHECKING:
    from rfc3161_client import TimeStampResponse

TOKEN_BYTES_MAX: Final = 65_536
# Errors that the libraries raise for bytes that are no stamp; LookupError for a name in a type of
# string that they do not know.
_MALFORMED: Final = (ValueError, TypeError, LookupError, x509.InvalidVersion, UnsupportedAlgorithm)
# Tag of the certificates in SignedData (RFC 5652).
_CERTIFICATES: Final = 0xA0
_SHA256: Final = x509.ObjectIdentifier("2.16.840.1.101.3.4.2.1")


class StampError(ValueError):
    """The text is no time stamp, not of this note, or not by a trusted authority."""


class NoTimestampsError(StampError):
    """rfc3161-client is not installed."""

    def __str__(self) -> str:
        return "time stamps need the extra: pip install 'statesvc[timestamps]'"


@dataclass(frozen=True, slots=True)
class Trust:
    """The certificates that verify stamps: at least one root, and any intermediates."""

    roots: tuple[x509.Certificate, ...]
    intermediates: tuple[x509.Certificate, ...]

    @classmethod
    def parse(cls, pem: bytes) -> "Trust":
        """Parse certificates in PEM, the authority's root among them. Raises StampError."""
        try:
            found = x509.load_pem_x509_certificates(pem)
        except ValueError:
            raise StampError("no certificates in PEM") from None
        roots = tuple(each for each in found if each.issuer == each.subject)
        if not roots:
            raise StampError(
                "the root certificate of the time stamping authority is missing (one that it issued"
                " to itself)"
            )
        return cls(roots, tuple(each for each in found if each not in roots))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Statement that an authority vouches for.

    `authority`: the subject of the certificate that signed, as RFC 4514 writes it.
    """

    stamped_at: datetime
    authority: str
    nonce: int | None


@dataclass(frozen=True, slots=True)
class Inquiry:
    """Request to the authority, and the number that its answer must repeat."""

    request: bytes
    nonce: int


def require_library() -> None:
    """Raise NoTimestampsError where no stamp can be made or read."""
    if find_spec("rfc3161_client") is None:
        raise NoTimestampsError


def inquire(note: str) -> Inquiry:
    """Ask for a stamp of this note. Raises NoTimestampsError."""
    require_library()
    # two megabytes, which hardly any process needs
    from rfc3161_client import HashAlgorithm, TimestampRequestBuilder  # noqa: PLC0415

    request = (
        TimestampRequestBuilder().data(note.encode()).hash_algorithm(HashAlgorithm.SHA256).build()
    )
    if request.nonce is None:
        raise StampError("a request without a nonce")
    return Inquiry(request.as_bytes(), request.nonce)


def read_stamp(token: bytes, note: str) -> Stamp:
    """Read a token about this note, with any signature. Raises StampError."""
    return _stamp(_decoded(token), note)


def check_stamp(token: bytes, note: str, trust: Trust, *, nonce: int | None = None) -> Stamp:
    """Check a token: signed by a trusted authority, and with this `nonce`. Raises StampError."""
    require_library()
    # two megabytes, which hardly any process needs
    from rfc3161_client import VerificationError, VerifierBuilder  # noqa: PLC0415

    answer = _decoded(token)
    stamp = _stamp(answer, note)
    if nonce is not None and stamp.nonce != nonce:
        raise StampError("the stamp answers another request (its nonce is another)")
    verifier = VerifierBuilder(
        roots=list(trust.roots), intermediates=list(trust.intermediates)
    ).build()
    try:
        verifier.verify(answer, hashlib.sha256(note.encode()).digest())
    except (VerificationError, *_MALFORMED) as error:
        raise StampError(f"the stamp is not by an authority that is trusted: {error}") from error
    return stamp


def _decoded(token: bytes) -> "TimeStampResponse":
    require_library()
    # two megabytes, which hardly any process needs
    from rfc3161_client import PKIStatus, decode_timestamp_response  # noqa: PLC0415

    if len(token) > TOKEN_BYTES_MAX:
        raise StampError("too long for a time stamp")
    try:
        answer = decode_timestamp_response(_with_sorted_certificates(token))
        status = PKIStatus(answer.status)
    except _MALFORMED:
        raise StampError("not a time stamp (RFC 3161)") from None
    if status is not PKIStatus.GRANTED:
        raise StampError(f"the authority gave no stamp: {status.name.lower()}")
    return answer


def _with_sorted_certificates(token: bytes) -> bytes:
    """Sort the certificates as DER requires; rfc3161-client refuses the token otherwise.

    `openssl ts` and public authorities send the signer's certificate first. Their order is not
    signed; a malformed token stays as it is.
    """
    try:
        _, content_info = _elements(token, *_inside(token, 0))
        _, signed_data = _elements(token, *_inside(token, content_info[0]))
        fields = _elements(token, *_inside(token, _inside(token, signed_data[0])[0]))
        begin, end = next(
            _inside(token, start) for start, _ in fields if token[start] == _CERTIFICATES
        )
        certificates = sorted(token[start:stop] for start, stop in _elements(token, begin, end))
    except (ValueError, LookupError, StopIteration):
        return token
    return token[:begin] + b"".join(certificates) + token[end:]


def _elements(der: bytes, begin: int, end: int) -> list[tuple[int, int]]:
    """Return where each element between these places begins and ends."""
    found = []
    while begin < end:
        found.append((begin, _inside(der, begin)[1]))
        begin = found[-1][1]
    return found


def _inside(der: bytes, start: int) -> tuple[int, int]:
    """Return where the content of the element at `start` begins and ends."""
    length, begin = der[start + 1], start + 2
    if length & 0x80:
        width = length & 0x7F
        length, begin = int.from_bytes(der[begin : begin + width]), begin + width
    return begin, begin + length


def _stamp(answer: "TimeStampResponse", note: str) -> Stamp:
    try:
        info = answer.tst_info
        imprint = info.message_imprint
        authority = _authority(answer)
        nonce: int | None = info.nonce
        stamped_at = info.gen_time
    except _MALFORMED:
        raise StampError("not a time stamp (RFC 3161)") from None
    if (
        imprint.hash_algorithm != _SHA256
        or imprint.message != hashlib.sha256(note.encode()).digest()
    ):
        raise StampError("the stamp is of something else than this checkpoint")
    return Stamp(stamped_at=stamped_at.astimezone(UTC), authority=authority, nonce=nonce)


def _authority(answer: "TimeStampResponse") -> str:
    certificates: Sequence[x509.Certificate] = [
        x509.load_der_x509_certificate(each) for each in answer.signed_data.certificates
    ]
    for signer in answer.signed_data.signer_infos:
        for certificate in certificates:
            if (certificate.issuer, certificate.serial_number) == (
                signer.issuer,
                signer.serial_number,
            ):
                return certificate.subject.rfc4514_string()
    raise StampError("the stamp does not hold the certificate of who signed it")
