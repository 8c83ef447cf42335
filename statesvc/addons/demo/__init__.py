"""Invented traffic of sample carriers and a sample subscriber, for `statesvc up --demo`.

The service itself uses none of it. All parcels, people and places in it are invented.
"""

from typing import Final

from statesvc.seams import AddOn

ADDON: Final = AddOn()
