"""How much of what the log is committed to a document shows, in the words of the bundle's `..._state` fields."""

from typing import Final

OPENED: Final = "opened"
WITHHELD: Final = "withheld"
"""From a reader without the scope `pii`."""
ERASED: Final = "erased"
NONE: Final = "none"
"""There was never any."""
SHARED: Final = "shared"
"""It is about other people's shipments too."""
UNAVAILABLE: Final = "unavailable"
