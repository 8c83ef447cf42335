"""Failures: whose fault they are (only a message's own may send it to the dead letters),
and what is tried again.
"""

import asyncio
import time
from contextlib import nullcontext
from typing import Any
from uuid import uuid4

import pytest
from psycopg import AsyncConnection, OperationalError, errors

from statesvc.append.retry import (
    FAULTS,
    REDELIVERY_MAX_SECONDS,
    Fault,
    LockedShipmentsError,
    RetryPolicy,
    classify,
    redelivery_backoff_seconds,
    run_transaction,
)
from statesvc.database.sql_errors import Failure
from tests.world.worker_harness import WorkerHarness, shipment


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (errors.DeadlockDetected(), Fault.TRANSIENT),
        (errors.SerializationFailure(), Fault.TRANSIENT),
        (errors.LockNotAvailable(), Fault.LOCKED),
        (LockedShipmentsError([]), Fault.LOCKED),
        (errors.QueryCanceled(), Fault.TRANSIENT),
        (errors.AdminShutdown(), Fault.TRANSIENT),
        (errors.DiskFull(), Fault.TRANSIENT),
        (errors.TooManyConnections(), Fault.TRANSIENT),
        (errors.OutOfMemory(), Fault.TRANSIENT),
        (OperationalError(), Fault.TRANSIENT),
        (TimeoutError(), Fault.TRANSIENT),
        (MemoryError(), Fault.TRANSIENT),
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
def test_the_state_of_the_database_is_never_a_message_s_fault(
    error: Exception, fault: Fault
) -> None:
    # a CheckViolation without a constraint is a missing partition
    assert classify(error) is fault


def test_every_failure_of_the_database_has_a_fault() -> None:
    assert set(FAULTS) == set(Failure)


def test_a_retry_backs_off_from_5_to_300_seconds_a_quarter_up_or_down() -> None:
    for retries, middle in [
        (0, 5),
        (1, 10),
        (3, 40),
        (6, REDELIVERY_MAX_SECONDS),
        (1000, REDELIVERY_MAX_SECONDS),
    ]:
        pauses = [redelivery_backoff_seconds(retries) for _ in range(200)]
        assert 0.75 * middle <= min(pauses) < max(pauses) <= 1.25 * middle


LATER = time.monotonic() + 1e6


@pytest.mark.parametrize(
    ("error", "policy", "is_tried_again"),
    [
        (errors.DeadlockDetected(), RetryPolicy(), True),
        (errors.DeadlockDetected(), RetryPolicy(tries=2), True),
        (errors.DeadlockDetected(), RetryPolicy(tries=1), False),
        (errors.DeadlockDetected(), RetryPolicy(deadline=LATER), True),
        (errors.DeadlockDetected(), RetryPolicy(deadline=0), False),
        (errors.LockNotAvailable(), RetryPolicy(), False),
        (errors.LockNotAvailable(), RetryPolicy(locked_until=LATER), True),
        (errors.LockNotAvailable(), RetryPolicy(locked_until=LATER, tries=1), False),
        (LockedShipmentsError([]), RetryPolicy(), False),
        (LockedShipmentsError([]), RetryPolicy(locked_until=LATER, tries=1), True),
        (errors.NumericValueOutOfRange(), RetryPolicy(locked_until=LATER), False),
    ],
)
def test_a_policy_tries_again_what_may_succeed_within_its_bounds(
    error: Exception, policy: RetryPolicy, *, is_tried_again: bool
) -> None:
    assert (policy.pause(error, failures=1) is not None) is is_tried_again


async def test_a_locked_shipment_is_waited_for_before_the_transaction_is_tried_again(
    harness: WorkerHarness,
) -> None:
    await harness.ingest({"number": "A", "status": "picked_up"})
    tries = 0

    async def transaction(_: Any) -> int:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise LockedShipmentsError([shipment("A"), uuid4()])
        return tries

    async with await AsyncConnection.connect(harness.database.service_dsn) as holder:
        await holder.execute(
            "SELECT FROM statesvc.stream WHERE shipment_id = %s FOR UPDATE", (shipment("A"),)
        )
        policy = RetryPolicy(locked_until=time.monotonic() + 60)
        running = asyncio.create_task(
            run_transaction(harness.context.pool.connection, transaction, policy)
        )
        await harness.until(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND"
            " wait_event_type = 'Lock' AND query ~ 'statesvc.stream'",
            1,
        )
        assert tries == 1
        await holder.commit()
    assert await running == 2


async def test_a_shipment_that_stays_locked_ends_the_tries(harness: WorkerHarness) -> None:
    await harness.ingest({"number": "A", "status": "picked_up"})

    async def transaction(_: Any) -> None:
        raise LockedShipmentsError([shipment("A")])

    async with await AsyncConnection.connect(harness.database.service_dsn) as holder:
        await holder.execute(
            "SELECT FROM statesvc.stream WHERE shipment_id = %s FOR UPDATE", (shipment("A"),)
        )
        policy = RetryPolicy(locked_until=time.monotonic() + 0.05)
        with pytest.raises(LockedShipmentsError):
            await run_transaction(lambda: nullcontext(harness.connection), transaction, policy)
