"""The table of carriers: ids are there at once, a carrier's module when it is first used."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from events.carriers import CARRIERS

def loaded():
    return {name for name in ("hermes", "seventeentrack", "ups") if f"events.carriers.{name}" in sys.modules}

assert {"17track", "hermes", "ups"} <= set(CARRIERS)
assert "ups" in CARRIERS
versions = {carrier_id: set(CARRIERS.versions(carrier_id)) for carrier_id in CARRIERS}
assert loaded() == set()
assert CARRIERS["17track"].carrier_id == "17track"
assert loaded() == {"seventeentrack"}
assert all(carrier.carrier_id == carrier_id for carrier_id, carrier in CARRIERS.items())
assert versions == {carrier_id: set(carrier.normalizers) for carrier_id, carrier in CARRIERS.items()}
"""


@pytest.mark.usefixtures("own_processes")
def test_a_carrier_is_imported_when_it_is_first_used() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
