"""The parts that an installation may leave out (STATESVC_ADDONS).

Each package here declares an `ADDON` (`statesvc.seams`). The core imports none of them, and none
imports another.
"""

from typing import Final

ADDONS: Final = (
    "archive",
    "brokers",
    "console",
    "development",
    "evidence",
    "expectations",
    "mappings",
    "mcp",
    "shovel",
    "spark",
    "stream",
    "verify",
    "witness",
    "demo",
)
