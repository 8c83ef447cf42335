"""A message of which a container has another name or shape is read, rejected or refused: it never comes to nothing.

Of 67 readers 60 came to nothing where a container of one of their fixtures was renamed, wrapped, doubled or emptied to the other kind.
"""

import re
from typing import Final

import pytest

from events.carriers import CARRIERS
from events.errors import UnreadableMessageError
from events.event import Normalized
from tests.events.carriers.carrier_fixtures import fixture_paths, read
from tests.events.carriers.container_changes import changed_bodies

EMPTY_LISTS: Final = {
    "17track/answer_accepted_and_rejected.json": "latest_status",
    "dhl_unified/push_one_without_scans.json": "status events",
    "easypost/tracker_without_scans.json": "tracking_details",
    "fedex/track_result_without_scans.json": "latestStatusDetail scanEvents",
}
"""Fixtures that print their list of scans, and it is empty: that is the message's own word that there is nothing, and only the state of
the shipment is read. The containers that may be changed then."""
EMPTIED: Final = ("emptied", "left out")


def silent_changes(carrier_id: str) -> list[str]:
    """Return the changes of a carrier's fixtures after which nothing is read, nothing rejected and nothing refused."""
    found = []
    for path in fixture_paths(carrier_id):
        body, name = path.read_bytes(), f"{carrier_id}/{path.name}"
        if not (outcome(carrier_id, body) or Normalized()).readings:
            continue
        for change, changed in changed_bodies(body):
            may_be_empty = (
                change.startswith(EMPTIED)
                or re.split("[ /]", change)[-1] in EMPTY_LISTS.get(name, "").split()
            )
            if outcome(carrier_id, changed) == Normalized() and not may_be_empty:
                found.append(f"{name}: {change}")
    return found


def outcome(carrier_id: str, body: bytes) -> Normalized | None:
    """Read a body; None: refused."""
    try:
        return read(CARRIERS[carrier_id], body)
    except UnreadableMessageError:
        return None


@pytest.mark.parametrize("carrier_id", sorted(CARRIERS.keys() - {"canonical"}))
def test_a_renamed_wrapped_or_doubled_container_is_read_or_rejected(carrier_id: str) -> None:
    assert silent_changes(carrier_id) == []
