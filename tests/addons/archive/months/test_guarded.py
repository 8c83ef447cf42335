"""Archiving a month where event triggers guard the log: it announces what it drops, and what it
dropped stands in the log.
"""

import pytest
from psycopg import AsyncConnection

from statesvc.addons.verify.verify_log import Verification, VerificationRequest
from statesvc.addons.verify.worker_pool import LogAccess
from statesvc.database.log_guard import install_guard
from tests.world.attack import places
from tests.world.log_archivist import Archivist

DONE = """
    SELECT convert_from(canonical, 'UTF8')::jsonb #>> '{details,why}' FROM statesvc.action
    WHERE verb = 'log_ddl' AND target LIKE '%statesvc.event%' ORDER BY batch_id"""


async def test_a_month_leaves_under_guard_and_the_log_says_why(archivist: Archivist) -> None:
    await install_guard(archivist.database.superuser_dsn)
    await archivist.two_months()
    outcome = await archivist.run_pass()
    assert (outcome.failed, len(outcome.archived)) == ([], 1)
    async with await AsyncConnection.connect(archivist.database.owner_dsn) as owner:
        reasons = {why for (why,) in await (await owner.execute(DONE.encode())).fetchall()}
    assert len(reasons) == 1
    assert "is archived, SHA-256" in reasons.pop()
    assert places(archivist.verify()) == []


@pytest.mark.usefixtures("two_months")
async def test_an_auditor_verifies_archived_months_too(archivist: Archivist) -> None:
    await archivist.run_pass()
    access = LogAccess(dsn=archivist.database.auditor_dsn, archive=archivist.folder)
    assert places(Verification(VerificationRequest(access=access), lambda *_: None).run()) == []
