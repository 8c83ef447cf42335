"""The caller's journey: `python -m tests.journeys.caller` installs the Python client into an empty
environment and uses it.

Events in, one and many; then the shipment by its number alone, its state, its history in pages, by
the order it belongs to, and the changes from the first on, against `statesvc up`. Prints what was
measured; exit code 1: a step failed.
"""

import sys
import time
from pathlib import Path

from tests.journeys.client_environment import client_environment, run
from tests.journeys.installation import installation, main, require

PROGRAM = Path(__file__).with_name("caller_program.py")


def travel() -> dict[str, object]:
    with installation("caller") as service:
        began = time.monotonic()
        python = client_environment(service.home)
        installed_seconds = time.monotonic() - began
        keys = {f"{scope.upper()}_KEY": service.key(scope, scope) for scope in ("ingest", "read")}
        printed = run(
            [python, PROGRAM], environment=keys | {"URL": service.url}, folder=service.home
        )
        shown = service.command(keys["READ_KEY"], "shipments", "find", "1ZJOURNEY0000000002")
        require("delivered" in shown, f"the command finds another state: {shown}")
        return {"installed_seconds": round(installed_seconds, 1), "import_seconds": float(printed)}


if __name__ == "__main__":
    sys.exit(main(travel))
