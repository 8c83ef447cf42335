"""The worker's tests log as in production: an exception for a terminal takes longer than the leases of these tests."""

import io

import pytest


@pytest.fixture(autouse=True)
def _logged_as_in_production(log: io.StringIO) -> None:
    """Asks for the fixture, whether a test reads its lines or not."""
