"""The fixtures of the service's own tests."""

from tests.statesvc.conftest import owner, pool, service

__all__ = ["owner", "pool", "service"]
