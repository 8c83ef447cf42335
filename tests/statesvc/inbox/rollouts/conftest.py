"""A shop whose carrier has candidates with planted faults."""

from dataclasses import replace

import pytest

from tests.statesvc.inbox.rollouts.planted import CARRIER
from tests.statesvc.worker.conftest import log as log  # noqa: PLC0414 - a fixture
from tests.statesvc.worker.conftest import pool as pool  # noqa: PLC0414 - a fixture
from tests.statesvc.worker.conftest import shop as plain_shop  # noqa: F401 - a fixture
from tests.statesvc.worker.shop import CARRIER_ID, Shop


@pytest.fixture
def shop(plain_shop: Shop) -> Shop:  # noqa: F811 - the fixture of that name
    plain_shop.context = replace(plain_shop.context, carriers={CARRIER_ID: CARRIER})
    return plain_shop
