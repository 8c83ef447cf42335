"""Archiving a month where event triggers guard the log: it announces what it drops, and what it
dropped stands in the log.
"""

import pytest
from psycopg import AsyncConnection

from statesvc.addons.verify.verify_log import Verification, VerificationRequest
from statesvc.addons.verify.worker_pool import LogAccess
from statesvc.database.log_guard import install_guard
from tests.world.attack import places
from tests.world.log_archiver import Archiver

DONE = """
    SELECT convert_from(canonical, 'UTF8')::jsonb #>> '{details,why}' FROM statesvc.action
    WHERE verb = 'log_ddl' AND target LIKE '%statesvc.event%' ORDER BY batch_id"""


async def test_a_month_leaves_under_guard_and_the_log_says_why(archiver: Archiver) -> None:
    await install_guard(archiver.database.superuser_dsn)
    await archiver.two_months()
    outcome = await archiver.run_pass()
    assert (outcome.failed, len(outcome.archived)) == ([], 1)
    async with await AsyncConnection.connect(archiver.database.owner_dsn) as owner:
        reasons = {why for (why,) in await (await owner.execute(DONE.encode())).fetchall()}
    assert len(reasons) == 1
    assert "is archived, SHA-256" in reasons.pop()
    assert places(archiver.verify()) == []


@pytest.mark.usefixtures("two_months")
async def test_an_auditor_verifies_archived_months_too(archiver: Archiver) -> None:
    await archiver.run_pass()
    access = LogAccess(dsn=archiver.database.auditor_dsn, archive=archiver.folder)
    assert places(Verification(VerificationRequest(access=access), lambda *_: None).run()) == []
