"""Sample carriers that post invented traffic and a sample subscriber that listens: what `statesvc up --demo` adds.

Nothing here is used by the service itself. All parcels, people and places in it are invented.
"""

from typing import Final

from statesvc.seams import AddOn

ADDON: Final = AddOn()
