"""A shipment's versions ascend with the index, and `verify` says so where they do not."""

import struct
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statesvc.addons.verify import verify_log as run
from statesvc.addons.verify import version_order
from statesvc.addons.verify.event_ids import EventIds
from tests.world.attack import attack, places, sealed_story, verify
from tests.world.log_builder import LogBuilder, scan

SHIPMENTS = [UUID(int=place * 2**126 + 5) for place in range(4)]
LATE = (
    "SELECT * FROM statesvc.unsealed WHERE batch_id = (SELECT min(batch_id) + 1 FROM"
    " statesvc.unsealed)"
)


async def test_a_version_whose_batch_was_left_behind_is_named_and_is_no_change(
    database: Any, event_log: LogBuilder
) -> None:
    for place in range(3):
        await event_log.append(scan("1ZTURNED", place, None))
    await attack(
        database,
        f"CREATE TABLE statesvc.late AS {LATE}",
        "DELETE FROM statesvc.unsealed u USING statesvc.late l WHERE u.batch_id = l.batch_id",
    )
    await event_log.seal()
    await attack(database, "INSERT INTO statesvc.unsealed SELECT * FROM statesvc.late")
    await event_log.seal()
    report = verify(database)
    (fault,) = report.remarks
    assert report.consistent
    assert (fault.table, fault.field, fault.why) == (
        "event",
        "version",
        "is sealed at index 2, after version 3 at 1",
    )


async def test_a_later_version_under_a_lower_batch_id_is_named(
    database: Any, event_log: LogBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as somebody writes who appends past the head's lock: the batch ids then descend with the
    # versions, and are sealed in their order
    await event_log.append(scan("1ZTURNED", 0, None))
    for next_id, place in ((3, 1), (2, 2)):
        await attack(database, f"SELECT setval('statesvc.batch_id_seq', {next_id}, false)")
        await event_log.append(scan("1ZTURNED", place, None))
    await attack(database, "SELECT setval('statesvc.batch_id_seq', 3, true)")
    await event_log.seal()
    monkeypatch.setattr(version_order, "PORTION_BYTES", 28)
    (fault,) = verify(database).faults
    assert (fault.table, fault.field, fault.why) == (
        "event",
        "version",
        "is sealed at index 2, after version 3 at 1",
    )


async def test_the_order_is_checked_after_a_stop_too(
    database: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state.json"
    monkeypatch.setattr(run, "_SAVE_SECONDS", 0.0)
    async with sealed_story(database):
        with monkeypatch.context() as stopping:
            stopping.setattr(
                run, "unexpected_subtree", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
            )
            with pytest.raises(KeyboardInterrupt):
                verify(database, state_file=state)
        spool = tmp_path / "state.json.order"
        written = spool.read_bytes()
        assert written
        # what was written after the progress was kept does not count twice
        spool.write_bytes(written + written)
        assert places(verify(database, state_file=state)) == []
        assert not spool.exists()


def test_of_versions_that_follow_one_another_the_first_and_the_last_are_noted() -> None:
    def noted(
        *events: tuple[str, int], fault: tuple[str, str] | None = None
    ) -> list[tuple[str, int, int]]:
        ids = [
            EventIds("ups", "", str(UUID(digits * 32)), b"", (), fault, (), version)
            for digits, version in events
        ]
        found = version_order.positions_of(enumerate(ids), 7)
        return [
            (each[:1].hex()[0], *struct.unpack(">IQ", each[16:]))
            for each in (found[at : at + 28] for at in range(0, len(found), 28))
        ]

    assert noted() == []
    assert noted(("a", 1)) == [("a", 1, 7)]
    assert noted(("a", 1), ("a", 2)) == [("a", 1, 7), ("a", 2, 8)]
    assert noted(("a", 1), ("a", 2), ("a", 3), ("b", 4)) == [("a", 1, 7), ("a", 3, 9), ("b", 4, 10)]
    assert noted(("a", 2), ("a", 1), ("b", 1), ("a", 2)) == [
        ("a", 2, 7),
        ("a", 1, 8),
        ("b", 1, 9),
        ("a", 2, 10),
    ]
    assert noted(("a", 1), ("a", 2), fault=("shipment_id", "")) == []


@given(
    st.lists(
        st.tuples(st.sampled_from(SHIPMENTS), st.integers(1, 9), st.integers(0, 50)), unique=True
    ),
    st.integers(1, 7),
)
def test_the_positions_of_a_cluster_have_the_inversions_of_all(
    events: list[tuple[UUID, int, int]], buckets: int
) -> None:
    places = b"".join(struct.pack(">16sIQ", id_.bytes, *rest) for id_, *rest in events)
    parts = dict(version_order.positions_by_bucket(places, buckets))
    whole, kept = version_order.VersionOrder(None), version_order.VersionOrder(None)
    whole.add(places)
    for bucket in sorted(parts):
        kept.add(version_order.inverted_records(parts[bucket]))
    assert set(parts) <= set(range(buckets))
    assert set(kept.inverted()) == set(whole.inverted())
    whole.close()
    kept.close()
