"""Reasons for a failed connection, from exceptions of Python, aiohttp and brokers' clients. Pure.

Their texts are not used: they may hold addresses, or a proxy's or resolver's output.
"""

import errno
import socket
import ssl
from collections.abc import Iterator
from typing import Final

from aiohttp import ClientConnectorDNSError

from statesvc.delivery.addresses import AddressRefusedError
from statesvc.delivery.outcome import AttemptOutcome

_CAUSES_MAX: Final = 8


def outcome_of_failure(error: BaseException) -> AttemptOutcome:
    """Return how an attempt ended that raised this, or anything that another exception is about."""
    return next(
        (outcome for each in _causes(error) if (outcome := _outcome(each)) is not None),
        AttemptOutcome.UNREACHABLE,
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    for _ in range(_CAUSES_MAX):
        if seen is None:
            return
        yield seen
        # aiohttp keeps the system's error, and the one about a certificate, as members
        inner = getattr(seen, "os_error", None) or getattr(seen, "certificate_error", None)
        seen = inner if isinstance(inner, BaseException) and inner is not seen else seen.__cause__


def _outcome(error: BaseException) -> AttemptOutcome | None:
    match error:
        case AddressRefusedError():
            return AttemptOutcome.ADDRESS_REFUSED
        case ssl.SSLCertVerificationError():
            return AttemptOutcome.CERTIFICATE_NOT_TRUSTED
        case ClientConnectorDNSError() | socket.gaierror():
            return AttemptOutcome.NAME_NOT_FOUND
        case ConnectionRefusedError():
            return AttemptOutcome.CONNECTION_REFUSED
        case TimeoutError() | OSError(errno=errno.ETIMEDOUT):
            return AttemptOutcome.TIMED_OUT
        case _:
            return None
