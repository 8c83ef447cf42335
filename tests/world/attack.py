"""Somebody with a superuser's rights, who switches triggers and checks off, but has not the signing
key.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from psycopg import AsyncConnection

from events.crypto.sealing import MasterKeys
from statesvc.addons.verify.verify_log import Verification, VerificationReport, VerificationRequest
from statesvc.addons.verify.worker_pool import LogAccess
from tests.world.database import without_triggers
from tests.world.log_builder import MASTER, LogBuilder, log_builder, scan
from tests.world.postgres import fill_database

MASTER_KEYS = (bytes(range(32)),)
assert MasterKeys(MASTER_KEYS).current.key_id == MASTER.current.key_id


@asynccontextmanager
async def attacker(database: Any) -> AsyncIterator[AsyncConnection[Any]]:
    async with without_triggers(database.superuser_dsn) as connection:
        await connection.execute(
            """DO $$ DECLARE c record; BEGIN FOR c IN SELECT conrelid::regclass AS t, conname FROM pg_constraint
               WHERE contype IN ('c', 'p', 'u') AND connamespace = 'statesvc'::regnamespace AND coninhcount = 0
                   AND (contype = 'c' OR conrelid::regclass::text IN ('statesvc.sealed_batch', 'statesvc.subtree', 'statesvc.checkpoint'))
               LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.t, c.conname); END LOOP; END $$"""
        )
        await connection.execute("DROP INDEX IF EXISTS statesvc.sealed_batch_place")
        yield connection


async def attack(database: Any, *statements: str) -> None:
    async with attacker(database) as connection:
        for statement in statements:
            cursor = await connection.execute(statement.encode())
            assert cursor.rowcount != 0, f"changed nothing: {statement}"


@asynccontextmanager
async def sealed_story(database: Any) -> AsyncIterator[LogBuilder]:
    """Make a log of all kinds with several heads.

    Written once a run and copied, for writing it takes half a second of computing.
    """
    await fill_database(
        database.superuser_dsn, "sealed_story", partial(_write_sealed_story, database)
    )
    async with log_builder(database) as log:
        yield log


async def _write_sealed_story(database: Any, name: str) -> None:
    async with log_builder(database.on(name)) as log:
        await log.everything()
        await log.seal()
        for number in ("1Z0004", "1Z0005"):
            await log.parcel(number)
            await log.act()
            await log.seal()
        await log.append(scan("1Z0006", 1, None), scan("1Z0006", 2, None))
        await log.seal()


def verify(database: Any, **options: Any) -> VerificationReport:
    access = LogAccess(
        dsn=database.service_dsn,
        master_keys=options.pop("master_keys", MASTER_KEYS),
        archive=options.pop("archive", None),
    )
    progress = options.pop("progress", lambda *_: None)
    return Verification(VerificationRequest(access=access, **options), progress).run()


def places(report: VerificationReport) -> list[str]:
    return [str(fault) for fault in report.faults]
