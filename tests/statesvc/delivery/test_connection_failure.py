"""Why a receiver is not reached is one word, whichever client says it, and nothing of
the client's own text.
"""

import errno
import socket
import ssl

import pytest

from statesvc.delivery.addresses import AddressRefusedError
from statesvc.delivery.connection_failure import outcome_of_failure
from statesvc.delivery.outcome import AttemptOutcome


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ConnectionRefusedError(), AttemptOutcome.CONNECTION_REFUSED),
        (
            OSError(errno.ECONNREFUSED, "Multiple exceptions: [Errno 111] ..."),
            AttemptOutcome.CONNECTION_REFUSED,
        ),
        (
            socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
            AttemptOutcome.NAME_NOT_FOUND,
        ),
        (
            ssl.SSLCertVerificationError("self-signed certificate"),
            AttemptOutcome.CERTIFICATE_NOT_TRUSTED,
        ),
        (ssl.SSLError("wrong version number"), AttemptOutcome.UNREACHABLE),
        (TimeoutError(), AttemptOutcome.TIMED_OUT),
        (OSError(errno.ETIMEDOUT, "Connect call failed"), AttemptOutcome.TIMED_OUT),
        (OSError(errno.EHOSTUNREACH, "No route to host"), AttemptOutcome.UNREACHABLE),
        (ConnectionResetError(), AttemptOutcome.UNREACHABLE),
        (AddressRefusedError(), AttemptOutcome.ADDRESS_REFUSED),
    ],
)
def test_it_is_named_as_the_error_or_what_it_is_about_says(
    error: OSError, outcome: AttemptOutcome
) -> None:
    assert outcome_of_failure(error) is outcome
    about_it = RuntimeError("a client failed")
    about_it.__cause__ = error
    assert outcome_of_failure(about_it) is outcome


def test_errors_that_are_about_each_other_end() -> None:
    first, second = RuntimeError(), RuntimeError()
    first.__cause__, second.__cause__ = second, first
    assert outcome_of_failure(first) is AttemptOutcome.UNREACHABLE
