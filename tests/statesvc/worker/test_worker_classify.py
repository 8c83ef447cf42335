"""Whose fault a failure is: only a message's own may send it to the dead letters."""

import pytest
from psycopg import errors

from statesvc.worker.failures import Fault, classify


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (errors.DeadlockDetected(), Fault.TRANSIENT),
        (errors.ReadOnlySqlTransaction(), Fault.TRANSIENT),
        (errors.InsufficientPrivilege(), Fault.TRANSIENT),
        (errors.UndefinedTable(), Fault.TRANSIENT),
        (errors.CheckViolation(), Fault.TRANSIENT),
        (errors.IdleInTransactionSessionTimeout(), Fault.TRANSIENT),
        (ConnectionResetError(), Fault.TRANSIENT),
        (errors.NumericValueOutOfRange(), Fault.PERMANENT),
        (errors.NotNullViolation(), Fault.PERMANENT),
        (TypeError(), Fault.PERMANENT),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value.value,
)
def test_the_state_of_the_database_is_never_a_message_s_fault(error: Exception, fault: Fault) -> None:
    """A CheckViolation without a constraint is a missing partition."""
    assert classify(error) is fault
