"""A session that locks the inbox against everybody is named, no process is ready meanwhile, and the
status shows the rest.
"""

import asyncio
from typing import Any

from psycopg import AsyncConnection

from statesvc.api.service_status import read_status
from statesvc.cli.doctor.checks import check_database
from statesvc.health.storable import read_lock_fault, storage_findings


async def test_who_locks_the_inbox_is_named_by_readiness_and_doctor(
    database: Any, service: AsyncConnection[Any]
) -> None:
    async with await AsyncConnection.connect(database.owner_dsn) as other:
        await other.execute("LOCK TABLE statesvc.inbox IN ACCESS EXCLUSIVE MODE")
        async with asyncio.timeout(10):
            # a lock gives no sign
            while not (found := await storage_findings(service, migrations=())):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            doctor = await read_lock_fault(service)
            status = await read_status(service)
        named = (
            f"statesvc.inbox is locked by pid {other.info.backend_pid} (statesvc_owner, LOCK TABLE,"
            " for "
        )
        assert named in found[0].text
        assert named in (doctor or "")
        assert named in status.troubles[0].text
        unread = {each.about: each.text for each in status.troubles if "not read: " in each.text}
        assert {"queue", "readers"} == unread.keys()
        assert "lock timeout" in unread["queue"]
        assert status.sample.size_bytes
        assert status.sample.promises
    assert await storage_findings(service, migrations=()) == []
    assert not [each for each in (await read_status(service)).troubles if "not read" in each.text]


async def test_an_invalid_index_is_named(
    database: Any, service: AsyncConnection[Any], owner: AsyncConnection[Any]
) -> None:
    async with await AsyncConnection.connect(database.superuser_dsn, autocommit=True) as superuser:
        await superuser.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid ="
            " 'statesvc.inbox_token'::regclass"
        )
    found = [finding.text async for finding in check_database(service)]
    assert [
        each.text for each in (await read_status(service)).troubles if "is invalid" in each.text
    ]
    (named,) = [
        text for text in found if "statesvc.inbox_token of statesvc.inbox is invalid" in text
    ]
    await owner.execute(named.rsplit(", else ", 1)[1].encode())
    found = [finding.text async for finding in check_database(service)]
    assert not [text for text in found if "is invalid" in text]
