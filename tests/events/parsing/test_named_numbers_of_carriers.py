import pytest

from events.carriers import CARRIERS
from events.parsing.named_numbers import named_numbers


@pytest.mark.parametrize("carrier_id", CARRIERS)
def test_the_fields_of_every_carrier_can_be_looked_for_in_any_document(carrier_id: str) -> None:
    for body in (b"<a><b>1</b></a>", b'{"a": [{"b": 1}]}', b"[]"):
        assert set(named_numbers(body, CARRIERS[carrier_id].number_fields)) <= {"1"}
