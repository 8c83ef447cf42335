"""Fixtures of the soak stories: a server of their own each."""

from collections.abc import AsyncIterator

import pytest

from tests.soak.server import SoakServer, soak_server


@pytest.fixture
async def own_server() -> AsyncIterator[SoakServer]:
    """Run a fresh server: migrated, durable; gone with the test."""
    async with soak_server() as server:
        yield server
