"""The shop of the tests of reading: its carrier has candidates with planted faults."""

from tests.statesvc.reading.conftest import shop

__all__ = ["shop"]
