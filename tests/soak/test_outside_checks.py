"""The outside ledger's own arithmetic: it finds what is wrong, and nothing else."""

import base64
import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.soak.outside.aftermath import in_clear
from tests.soak.outside.log import Entry, canonical, check_log, root_of, shipment_id
from tests.soak.outside.parcels import Scan, outcome

_VECTOR = (
    "",
    "00",
    "10",
    "2021",
    "3031",
    "40414243",
    "5051525354555657",
    "606162636465666768696a6b6c6d6e6f",
)
"""The leaves of the tests of Certificate Transparency."""


def _log(**changes: dict[str, Any]) -> list[Entry]:
    """Build two events of one shipment and the transitions that they cause; `changes` of an entry,
    its hash left as it was or made anew.
    """
    shipment = shipment_id("ups", "1Z1", "")
    entries: list[Entry] = []
    previous = bytes(32)
    documents: list[dict[str, Any]] = []
    for version, status in ((1, "picked_up"), (2, "delivered")):
        event = {
            "entry": "event",
            "shipment_id": shipment,
            "version": version,
            "carrier_id": "ups",
            "event_id": f"e{version}",
        }
        event |= {
            "tracking_number": "1Z1",
            "discriminator": "",
            "recorded_at": f"2026-01-0{version}T00:00:00+00:00",
        }
        documents.append(event | {"previous_hash": previous.hex()})
        previous = hashlib.sha256(b"\0" + canonical(documents[-1])).digest()
        before = "unknown" if version == 1 else "picked_up"
        transition = {
            "entry": "transition",
            "shipment_id": shipment,
            "sequence": version,
            "from": before,
            "to": status,
        }
        documents.append(transition | {"event_id": f"e{version}"})
    for place, document in enumerate(documents):
        leaf = hashlib.sha256(b"\0" + canonical(document)).digest()
        entries.append(
            Entry(place, document["entry"], leaf, document | changes.get(f"entry{place}", {}))
        )
    return entries


def test_a_right_log_breaks_nothing() -> None:
    assert dict(check_log(_log()).broken) == {}


def test_a_changed_entry_a_gap_and_a_broken_chain_are_found() -> None:
    assert (
        "leaf hashes that are not those of their bytes"
        in check_log(_log(entry0={"event_id": "other"})).broken
    )
    assert (
        "versions with gaps, repeats, or out of order"
        in check_log(_log(entry2={"version": 3})).broken
    )
    assert (
        "chains that do not name the leaf before"
        in check_log(_log(entry2={"previous_hash": "00" * 32})).broken
    )
    assert (
        "event ids that are twice in the log" in check_log(_log(entry2={"event_id": "e1"})).broken
    )
    assert (
        "transitions that do not follow from each other"
        in check_log(_log(entry3={"from": "unknown"})).broken
    )
    assert (
        "events recorded at or before the one before"
        in check_log(_log(entry2={"recorded_at": "2026-01-01T00:00:00+00:00"})).broken
    )
    assert "indexes with gaps or repeats" in check_log(_log()[1:]).broken


def test_the_root_is_that_of_certificate_transparency() -> None:
    leaves = [hashlib.sha256(b"\0" + bytes.fromhex(leaf)).digest() for leaf in _VECTOR]
    assert (
        root_of(leaves).hex() == "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"
    )
    assert (
        root_of(leaves[:7]).hex()
        == "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"
    )
    assert root_of([]) == hashlib.sha256().digest()


def _outcome(*statuses: str) -> tuple[str, set[str]]:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return outcome(
        [Scan(now + timedelta(hours=hour), None, status) for hour, status in enumerate(statuses)]
    )


def test_simple_histories_end_by_the_rules() -> None:
    assert _outcome("info_received", "in_transit", "delivered") == ("delivered", set())
    assert _outcome("in_transit", "delivered", "in_transit") == ("delivered", {"contradicted"})
    assert _outcome("in_transit", "returning", "in_transit") == ("returning", set())
    assert _outcome("info_received", "cancelled", "in_transit", "delivered") == (
        "delivered",
        {"reopened"},
    )
    assert _outcome("in_transit", "picked_up") == ("picked_up", {"backward"})


def test_a_person_is_found_however_the_text_is_written() -> None:
    find = in_clear("SIGNERMARK").search
    assert find(b"...signermark77...")
    assert find(b"xSIGNERMARK77".hex().encode())
    assert all(find(base64.b64encode(b"x" * before + b"SIGNERMARK77")) for before in range(6))
    assert not find(b"SIGNER and MARK")
