"""A shop whose carrier has candidates with planted faults."""

from dataclasses import replace

import pytest

from tests.statesvc.reading.planted import CARRIER
from tests.world.shop import CARRIER_ID, Shop


@pytest.fixture
def shop(shop: Shop) -> Shop:
    shop.context = replace(shop.context, carriers={CARRIER_ID: CARRIER})
    return shop
