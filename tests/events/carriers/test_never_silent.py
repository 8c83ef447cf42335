"""A message of which a container has another name or shape is read, rejected or refused: it
never comes to nothing.

Of 67 readers 60 came to nothing where a container of one of their fixtures was renamed, wrapped,
doubled or emptied to the other kind. Of 77 readers 68 took `{}`, 67 `[]` and 18 `[{}]` for an
answer without scans, and 8 dropped an element without its scans beside others.
"""

import re
from typing import Final

import pytest

from events.carriers import CARRIERS
from events.errors import UnreadableMessageError
from events.event import Normalized
from tests.events.carriers.carrier_fixtures import fixture_paths, read
from tests.events.carriers.container_changes import bodies_with_a_bare_element, changed_bodies

EMPTY_LISTS: Final = {
    "17track/answer_accepted_and_rejected.json": "latest_status",
    "dhl_unified/push_one_without_scans.json": "status events",
    "easypost/tracker_without_scans.json": "tracking_details",
    "fedex/track_result_without_scans.json": "latestStatusDetail scanEvents",
}
"""Fixtures that print their list of scans, and it is empty: that is the message's own word that
there is nothing, and only the state of
the shipment is read. The containers that may be changed then.
"""
EMPTIED: Final = ("emptied", "left out")


def silent_changes(carrier_id: str) -> list[str]:
    """Return the changes of a carrier's fixtures after which nothing is read, nothing
    rejected and nothing refused.
    """
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


NOTHING: Final = (b"{}", b"[]", b"[{}]", b'{"errors": []}', b'{"trackingNumber": "1"}')
BARE_BY_NATURE: Final = {
    "17track": {"data/rejected"},
    "dhl_express": {
        "trackShipmentRequestResponse/trackingResponse/TrackingResponse/AWBInfo/ArrayOfAWBInfoItem"
    },
    "dpd": {"parcellifecycleResponse/parcelLifeCycleData/statusInfo"},
    "postnl": {"CompleteStatus/Shipment/Address", "CurrentStatus/Shipment/Address"},
    "ups": {
        "QuantumViewResponse/QuantumViewEvents/SubscriptionEvents",
        "QuantumViewResponse/QuantumViewEvents/SubscriptionEvents/0/SubscriptionFile",
    },
}
"""Lists whose members hold no scans, or need not: rejected and unknown numbers, addresses,
undated steps beside scans,
subscriptions without files.
"""


@pytest.mark.parametrize("body", NOTHING)
def test_a_body_without_an_event_and_without_a_word_for_none_is_rejected(body: bytes) -> None:
    ours = CARRIERS.keys() - {"canonical"}
    assert [each for each in ours if outcome(each, body) == Normalized()] == []


@pytest.mark.parametrize("carrier_id", sorted(CARRIERS.keys() - {"canonical"}))
def test_an_element_without_its_scans_beside_others_is_rejected(carrier_id: str) -> None:
    dropped = []
    for path in fixture_paths(carrier_id):
        body = path.read_bytes()
        before = outcome(carrier_id, body) or Normalized()
        for where, changed in bodies_with_a_bare_element(body) if before.readings else ():
            now = outcome(carrier_id, changed)
            if (
                now is not None
                and len(now.readings) <= len(before.readings)
                and len(now.rejections) <= len(before.rejections)
                and where not in BARE_BY_NATURE.get(carrier_id, ())
            ):
                dropped.append(f"{path.name}: {where}")
    assert dropped == []
