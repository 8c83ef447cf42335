"""An upgrade under load and back: processes of two versions at once on one database, before and
after it was migrated. Nothing is lost.
"""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.processes import MASTER_KEY
from tests.soak.crew import Post
from tests.soak.earlier_code import EarlierCode, NoEarlierCodeError
from tests.soak.server import soak_server
from tests.soak.story import Story, told
from tests.world import postgres

ROLES: Final = ("api", "worker", "worker", "notifier", "sealer")
PAUSE_SECONDS: Final = 0.5
"""Seconds of load with the same processes, between two restarts."""
_STRANGE: Final = re.compile(r"Undefined(?:Column|Function|Table|Object)|InsufficientPrivilege")
"""Errors that a process logs which does not fit the schema, though others may make
good what it could not do.
"""


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("own_processes")
async def test_an_upgrade_under_load_and_back_loses_nothing(tmp_path: Path) -> None:
    try:
        earlier = await asyncio.to_thread(EarlierCode.unpack, tmp_path / "earlier")
    except NoEarlierCodeError as error:
        pytest.skip(str(error))
    earlier.check()
    old_posts = [Post(role=role, settings=earlier.environment) for role in ROLES]
    async with soak_server(migrated=False) as own:
        await _migrate(own.dsns, earlier.environment if earlier.is_upgradable else {})
        async with told(
            f"upgrade from {earlier.commit[:8]}", own.dsns, tmp_path, posts=old_posts
        ) as story:
            await asyncio.sleep(PAUSE_SECONDS)
            with story.disturbance("the new code migrates"):
                await _migrate(own.dsns, {})
            await _replace_all(story, {})
            await _replace_all(story, earlier.environment)
        story.notes.append("" if earlier.is_upgradable else "the database was made by the new code")
    logs = [role.log for role in story.service.roles]
    strange = {
        log.name: found
        for log in logs
        if (found := sorted(set(_STRANGE.findall(log.read_text(errors="replace")))))
    }
    assert strange == {}


async def _replace_all(story: Story, settings: Mapping[str, str]) -> None:
    """Replace one after the other, as operators do: until the last is replaced both versions
    work.
    """
    posts = [Post(role=member.post.role, settings=settings) for member in story.crew.members]
    for member, post in zip(story.crew.members, posts, strict=True):
        with story.disturbance(f"{post.role} replaced"):
            await member.give_way(post)
        await asyncio.sleep(PAUSE_SECONDS)


async def _migrate(server: postgres.Server, environment: Mapping[str, str]) -> None:
    settings = {
        "DATABASE_URL": server.service_dsn,
        "STATESVC_OWNER_URL": server.owner_dsn,
        "STATESVC_MASTER_KEY": MASTER_KEY,
    }
    await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "statesvc", "migrate"],
        env={**os.environ, **settings, **environment},
        check=True,
    )
