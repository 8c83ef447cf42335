"""The event ids of the repository's own fixtures: `expected/<carrier>.json` has them as they are,
`golden_ids_0_1_0.json` as the first release appended them.

An id that changes without becoming an alias has the carrier's whole history appended again, so none
ever does once it has landed. `python -m tests.events.carriers.golden --write` adds what new
fixtures say to `expected/`; it never changes an expectation.
"""

import hmac
import json
import sys
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from events.carriers import CARRIERS
from events.identity.ids import identify
from tests.events.carriers.carrier_fixtures import (
    EXPECTED,
    FIXTURES,
    described,
    expectations,
    fixture_paths,
    read,
)

RELEASED: Final = Path(__file__).parent / "golden_ids_0_1_0.json"
"""By carrier and name of the fixture: the ids in the order of its readings."""


def released_changes() -> list[str]:
    """Return every id of 0.1.0 that is neither the event's id nor one of its aliases now."""
    before: dict[str, dict[str, Any]] = json.loads(RELEASED.read_text("utf-8"))
    return [
        f"{carrier_id}/{name}: {was} became {became}"
        for carrier_id, fixtures in before.items()
        for name, ids in fixtures.items()
        for was, became in zip_longest(ids, _ids(carrier_id, name), fillvalue=())
        if was not in became
    ]


def _ids(carrier_id: str, name: str) -> list[tuple[str, ...]]:
    readings = read(CARRIERS[carrier_id], (FIXTURES / carrier_id / name).read_bytes()).readings
    events = (
        identify(reading, carrier_id=carrier_id, digest=_digest, allow_unnumbered=True)
        for reading in readings
    )
    return [(event.event_id, *event.aliases) for event in events]


def _digest(data: bytes) -> bytes:
    return hmac.digest(b"golden", data, "sha256")


def write() -> None:
    """Write down what new fixtures say; an expectation that is there stays."""
    for carrier_id, carrier in CARRIERS.items():
        before = expectations(carrier_id)
        found = {
            path.name: before.get(path.name)
            or {"shows": ["..."], **described(carrier_id, read(carrier, path.read_bytes()))}
            for path in fixture_paths(carrier_id)
        }
        if found != before:
            (EXPECTED / f"{carrier_id}.json").write_text(
                json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8"
            )


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("python -m tests.events.carriers.golden --write")
    write()
