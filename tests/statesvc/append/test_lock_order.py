"""The append: locks in the order of ARCHITECTURE.md, and no scan on a filled table."""

import asyncio
import re
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest
from psycopg import AsyncConnection, OperationalError, errors

from events.identity.recipe import Recipe
from events.identity.recipes import RECIPES
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
from statesvc.database.pipelined import Pipeline, PipelinedRows
from statesvc.database.queries import queries
from statesvc.database.sql_errors import Failure
from statesvc.queue.claim import lock_leased
from tests.world.worker_harness import CARRIER_ID, WorkerHarness, push_body, shipment

ROOT = Path(__file__).parents[3]
LOCKED = re.compile(r"(?:INSERT INTO|UPDATE|DELETE FROM|FROM) statesvc\.(\w+)")
TAKES_LOCKS = re.compile(r"INSERT INTO|UPDATE|DELETE FROM")
ADDED = frozenset({"outbox"})
"""The append only adds rows."""


def lock_order() -> list[str]:
    section = (ROOT / "ARCHITECTURE.md").read_text().split("## Lock order")[1]
    (line,) = (line for line in section.splitlines() if " > " in line)
    return [re.findall(r"`(\w+)`", part)[0] for part in line.split(" > ")]


def locked_by(query: str) -> list[str]:
    if "statesvc.hold_leased" in query:
        return ["inbox"]
    return LOCKED.findall(query) if TAKES_LOCKS.search(query) else []


async def test_the_append_takes_its_locks_in_the_stated_order(harness: WorkerHarness) -> None:
    order, taken = lock_order(), list[str]()
    execute = Pipeline.execute

    async def recording(
        self: Pipeline, query: Any, params: Any = None, **options: Any
    ) -> PipelinedRows:
        taken.extend(table for table in locked_by(query) if table in order and table not in ADDED)
        return await execute(self, query, params, **options)

    await harness.ingest({"number": "A", "status": "picked_up", "native_id": "1"})
    with patch.dict(
        RECIPES,
        {
            CARRIER_ID: Recipe(
                time="local",
                codes=("code",),
                also=(Recipe(time="local", place=("city", "country")),),
            )
        },
    ):
        await harness.push(
            push_body(
                {"number": "A", "status": "in_transit", "minute": 5, "code": "M"},
                {"number": "A", "status": "delivered", "minute": 9, "native_id": "1"},
                {"number": "NEW", "kind": "unmapped", "minute": 6, "code": "UNKNOWN"},
                rejected=1,
                named=["ONLY"],
            )
        )
        with patch.object(Pipeline, "execute", recording):
            await harness.work()
    firsts = list(dict.fromkeys(taken))
    assert firsts == sorted(firsts, key=order.index)
    assert set(firsts) == {"inbox", "stream", "conflict_key", "event_key", "dead_letter"}
    assert (
        await harness.value("SELECT count(*) FROM statesvc.event_key WHERE alias_of IS NOT NULL")
        > 0
    ), "an alias was among it"


STATEMENTS = {
    ("statesvc.log", "event_store"): (
        "known_keys",
        "read_streams",
        "lock_streams",
        "reserve_streams",
        "move_heads",
        "read_events",
    ),
    ("statesvc.log", "parcel_log"): ("link_streams", "parcel_changes", "parcels_of"),
    ("statesvc.shipments", "projection_store"): ("read_states", "save_shipments"),
    ("statesvc.queue", "claim"): ("settle",),
}
GROWING = re.compile(r"Seq Scan on (event|event_key|stream|shipment|inbox|message)\w*")
SCANS = "SELECT pg_stat_get_xact_numscans('statesvc.inbox'::regclass)::int"
"""Count of the times that the inbox was read whole."""
LEASED = """
INSERT INTO statesvc.inbox (message_id, received_at, available_at, body_bytes, carrier_id, sealed_key, token, worker)
VALUES (%s, now(), now(), 1, 'acme', '', %s, 'w')
"""
PARAMETER = re.compile(r"%\(\w+\)[bs]")


def numbered(query: str) -> str:
    """Replace the parameters by $1, $2, one each time that it stands there."""
    names = list(dict.fromkeys(PARAMETER.findall(query)))
    return PARAMETER.sub(lambda found: f"${names.index(found[0]) + 1}", query)


async def test_plans_that_were_made_of_empty_tables_serve_full_ones(
    database: Any, owner: AsyncConnection[Any]
) -> None:
    await owner.execute("VACUUM ANALYZE")
    async with (
        await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection,
        connection.transaction(),
    ):
        message_id, token = uuid4(), uuid4()
        await connection.execute(LEASED, [message_id, token])
        assert await (
            await lock_leased(connection, token, [message_id], lock_seconds=1)
        ).rows() == {message_id}
        assert await (await connection.execute(SCANS)).fetchone() == (0,)
        assert await (await connection.execute("SHOW plan_cache_mode")).fetchone() == (
            "force_generic_plan",
        )
        for module, names in STATEMENTS.items():
            for name in names:
                statement: Any = f"EXPLAIN (GENERIC_PLAN) {numbered(queries(*module)[name])}"
                plan = "\n".join(
                    line for (line,) in await (await connection.execute(statement)).fetchall()
                )
                assert not GROWING.search(plan), f"{name}\n{plan}"


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
