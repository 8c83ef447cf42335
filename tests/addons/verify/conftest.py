"""A log of all kinds with several heads."""

from collections.abc import AsyncIterator

import pytest

from tests.world.attack import sealed_story
from tests.world.database import Database
from tests.world.log_builder import LogBuilder


@pytest.fixture
async def sealed_log(database: Database) -> AsyncIterator[LogBuilder]:
    async with sealed_story(database) as log:
        yield log
