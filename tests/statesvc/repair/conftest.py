"""The worker's shop, for every repair."""

from tests.statesvc.worker.conftest import log as log  # noqa: PLC0414 - a fixture
from tests.statesvc.worker.conftest import pool as pool  # noqa: PLC0414 - a fixture
from tests.statesvc.worker.conftest import shop as shop  # noqa: PLC0414 - a fixture
