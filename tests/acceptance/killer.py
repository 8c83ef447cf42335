"""Runs `statesvc` with a carrier whose normalizer may end the process:
`python -m tests.acceptance.killer worker ...`.
"""

import os
import sys
from dataclasses import replace
from datetime import datetime
from typing import Final

from events.carriers import CARRIERS
from events.event import Normalized
from statesvc import cli
from tests.world.worker_harness import ACME, normalize

DEADLY: Final = b"deadly"


def kill(body: bytes, received_at: datetime) -> Normalized:
    """Die as a parser in C would: no exception, no farewell."""
    if body.startswith(DEADLY):
        os._exit(9)
    return normalize(body, received_at)


def main() -> int:
    CARRIERS[ACME.carrier_id] = replace(ACME, normalizers={"1": kill})
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
