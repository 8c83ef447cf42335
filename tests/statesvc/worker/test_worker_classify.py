"""Whose fault a failure is: only a message's own may send it to the dead letters."""

from unittest.mock import Mock

import pytest
from aiohttp import ClientConnectionError, ClientResponseError
from psycopg import OperationalError, errors

from statesvc.append.retry import FAULTS, RETRY_MAX_SECONDS, Fault, classify, retry_seconds
from statesvc.database.sql_errors import Failure


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (errors.DeadlockDetected(), Fault.TRANSIENT),
        (errors.SerializationFailure(), Fault.TRANSIENT),
        (errors.LockNotAvailable(), Fault.LOCKED),
        (errors.QueryCanceled(), Fault.TRANSIENT),
        (errors.AdminShutdown(), Fault.TRANSIENT),
        (errors.DiskFull(), Fault.TRANSIENT),
        (errors.TooManyConnections(), Fault.TRANSIENT),
        (errors.OutOfMemory(), Fault.TRANSIENT),
        (OperationalError(), Fault.TRANSIENT),
        (TimeoutError(), Fault.TRANSIENT),
        (MemoryError(), Fault.TRANSIENT),
        (ClientConnectionError(), Fault.TRANSIENT),
        (ClientResponseError(Mock(), (), status=503), Fault.TRANSIENT),
        (ClientResponseError(Mock(), (), status=404), Fault.PERMANENT),
        (errors.ReadOnlySqlTransaction(), Fault.TRANSIENT),
        (errors.InsufficientPrivilege(), Fault.TRANSIENT),
        (errors.UndefinedTable(), Fault.TRANSIENT),
        (errors.CheckViolation(), Fault.TRANSIENT),
        (errors.IdleInTransactionSessionTimeout(), Fault.TRANSIENT),
        (ConnectionResetError(), Fault.TRANSIENT),
        (errors.NumericValueOutOfRange(), Fault.PERMANENT),
        (errors.ProgramLimitExceeded(), Fault.PERMANENT),
        (errors.NotNullViolation(), Fault.PERMANENT),
        (TypeError(), Fault.PERMANENT),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value.value,
)
def test_the_state_of_the_database_is_never_a_message_s_fault(error: Exception, fault: Fault) -> None:
    """A CheckViolation without a constraint is a missing partition."""
    assert classify(error) is fault


def test_every_failure_of_the_database_has_a_fault() -> None:
    assert set(FAULTS) == set(Failure)


def test_a_retry_backs_off_from_5_to_300_seconds_a_quarter_up_or_down() -> None:
    for retries, middle in [(0, 5), (1, 10), (3, 40), (6, RETRY_MAX_SECONDS), (1000, RETRY_MAX_SECONDS)]:
        pauses = [retry_seconds(retries) for _ in range(200)]
        assert 0.75 * middle <= min(pauses) < max(pauses) <= 1.25 * middle
