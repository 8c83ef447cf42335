"""The worker of the tests of reading: its carrier has candidates with planted faults."""

from tests.statesvc.reading.conftest import harness

__all__ = ["harness"]
