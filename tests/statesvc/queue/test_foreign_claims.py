"""A carrier that two fleets share: who gets what, whatever the other one does."""

import hashlib
import os
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg import errors

from tests.statesvc.queue.test_queue_plans import FILL

pytestmark = pytest.mark.slow

OLD = "old@1"
BACKLOG = int(os.environ.get("STATESVC_TEST_BACKLOG", "20000"))
PAGES_MAX = 3_000
_TRIES = 4
"""A claim that took 64 messages touches about 1,200, most of them to lease and to read these."""


async def _put(inbox: Any, count: int, carrier_id: str = "ups") -> set[UUID]:
    return {message_id for message_id, _ in await inbox.put(*[carrier_id] * count)}


async def _all(inbox: Any, **asked: Any) -> set[UUID]:
    """Claim until nothing is left for this caller."""
    found: set[UUID] = set()
    while claimed := await inbox.claim(**asked):
        ids = {message.message_id for message in claimed}
        assert not ids & found
        found |= ids
    return found


async def test_the_share_is_a_digest_of_carrier_and_id_and_grows_without_moving_anybody(
    inbox: Any,
) -> None:
    ids = [uuid4() for _ in range(2_000)]
    for percent in (0, 1, 10, 50, 99, 100):
        found = await inbox.rows(
            "SELECT m FROM unnest(%s::uuid[]) m WHERE statesvc.in_share(m, 'ups', %s)",
            ids,
            percent,
        )
        digests = {m: hashlib.sha256(b"rollout\x1fups\x1f" + m.bytes).digest() for m in ids}
        assert {m for (m,) in found} == {
            m for m in ids if int.from_bytes(digests[m][:8]) % 10_000 < percent * 100
        }


@pytest.mark.parametrize("percent", [0, 1, 50, 99, 100])
@pytest.mark.parametrize("is_stable", [False, True])
async def test_each_reading_gets_its_share_and_nothing_else(
    inbox: Any, percent: int, *, is_stable: bool
) -> None:
    await inbox.roll_out(
        "ups",
        stable=OLD if is_stable else None,
        candidate="1" if is_stable else OLD,
        percent=percent,
    )
    put = await _put(inbox, 400)
    share = await inbox.share("ups", percent)
    others = await _put(inbox, 3, "fedex")
    ours = await _all(inbox, limit=50, stage="any")
    foreign = await _all(inbox, limit=50, stage="raw", normalizer=OLD)
    assert ours == (share if is_stable else put - share) | others
    assert foreign == (put - share if is_stable else share)


async def test_the_first_bucket_beyond_the_share_falls_to_the_stable_reading(inbox: Any) -> None:
    await inbox.roll_out("ups", OLD, 50, stable="older@1")
    query = "SELECT statesvc.reader_of(r, 49), statesvc.reader_of(r, 50) FROM statesvc.rollout r"
    assert await inbox.rows(query) == [(OLD, "older@1")]


async def test_who_names_no_reading_or_another_gets_nothing_of_a_shared_carrier(inbox: Any) -> None:
    await inbox.roll_out("ups", OLD, 50)
    await _put(inbox, 50)
    others = await _put(inbox, 3, "fedex")
    assert await _all(inbox, stage="raw", normalizer="other@1", carriers=["ups"]) == set()
    assert await _all(inbox, stage="raw", carriers=["ups"]) == set()
    assert await _all(inbox, stage="raw") == others


async def test_a_worker_gets_the_carriers_that_it_names(inbox: Any) -> None:
    ups, _ = await _put(inbox, 3), await _put(inbox, 3, "fedex")
    assert await _all(inbox, stage="raw", carriers=["ups"]) == ups


async def test_what_was_handed_over_or_declined_is_ours_whoevers_share_it_is(inbox: Any) -> None:
    await inbox.roll_out("ups", stable=OLD)
    put = await _put(inbox, 4)
    claimed = await inbox.claim(stage="raw", normalizer=OLD)
    ids = sorted(put)
    assert await inbox.hand_over(claimed[0].token, *ids[:2], normalizer=OLD) == 2
    assert await inbox.decline(claimed[0].token, *ids[2:]) == 2
    assert {(m.message_id, m.stage, m.fallback_for) for m in await inbox.claim(stage="any")} == {
        *((m, "normalized", None) for m in ids[:2]),
        *((m, "declined", None) for m in ids[2:]),
    }


async def test_settle_refuses_another_normalizer_than_the_one_that_claimed(inbox: Any) -> None:
    await inbox.roll_out("ups", OLD, 100)
    put = await _put(inbox, 2)
    (first, second) = await inbox.claim(stage="raw", normalizer=OLD)
    with pytest.raises(
        errors.InvalidParameterValue, match=r"was claimed as old@1, and is settled as old@2"
    ):
        await inbox.hand_over(first.token, first.message_id, normalizer="old@2")
    assert await inbox.hand_over(first.token, *put, normalizer=OLD) == 2
    assert second.token == first.token


async def test_turned_back_the_next_claim_of_ours_gets_all_that_waits_without_a_sweep(
    inbox: Any,
) -> None:
    await inbox.roll_out("ups", OLD, 50)
    put = await _put(inbox, 100)
    theirs = await inbox.share("ups", 50)
    assert await _all(inbox, stage="any") == put - theirs
    await inbox.advance(20)
    assert await _all(inbox, stage="any") == set(), "its mark moves as far as it may"
    await inbox.roll_out("ups", OLD, 0)
    assert await _all(inbox, stage="any") == theirs


async def test_a_reading_that_is_asked_for_keeps_its_share_however_long_it_waits(
    inbox: Any, other: Any
) -> None:
    await inbox.roll_out("ups", OLD, 50)
    put = await _put(inbox, 100)
    theirs = await inbox.share("ups", 50)
    await inbox.advance(300)
    assert len(await other.claim(1, stage="raw", normalizer=OLD)) == 1
    assert await _all(inbox, stage="any") == put - theirs


@pytest.mark.parametrize("is_stable", [False, True])
async def test_a_dead_readings_share_is_overdue_after_the_time_set_and_counted(
    inbox: Any, *, is_stable: bool
) -> None:
    await inbox.roll_out(
        "ups",
        stable=OLD if is_stable else None,
        candidate="1" if is_stable else OLD,
        percent=50,
        fallback_seconds=20,
    )
    assert await inbox.claim(stage="raw", normalizer=OLD) == []
    put = await _put(inbox, 100)
    share = await inbox.share("ups", 50)
    theirs = put - share if is_stable else share
    assert await _all(inbox, stage="any") == put - theirs
    await inbox.advance(19)
    assert await inbox.claim(stage="any") == []
    assert (
        0
        < await inbox.value(
            "SELECT extract(epoch FROM statesvc.next_due() - statesvc.clock())::float8"
        )
        <= 1
    )
    await inbox.advance(1)
    claimed = await inbox.claim(stage="any", limit=100)
    assert {message.message_id for message in claimed} == theirs
    assert {message.fallback_for for message in claimed} == {OLD}
    assert await inbox.rows(
        "SELECT normalizer, fallbacks FROM statesvc.reader WHERE carrier_id = 'ups'"
    ) == [(OLD, len(theirs))]


async def test_our_own_share_falls_to_the_foreign_reader_when_none_of_ours_asks(inbox: Any) -> None:
    await inbox.roll_out("ups", OLD, 50)
    put = await _put(inbox, 20)
    await inbox.advance(31)
    assert await _all(inbox, stage="raw", normalizer=OLD) == put


async def test_a_candidate_that_was_given_no_share_is_no_reader_and_the_stable_ones_messages_wait(
    inbox: Any,
) -> None:
    await inbox.roll_out("ups", stable=OLD, candidate="1", shadow=True)
    put = await _put(inbox, 20)
    await inbox.advance(3_600)
    assert await _all(inbox, stage="any", sweep=True) == set()
    assert await _all(inbox, stage="raw", normalizer=OLD) == put


async def test_a_suspect_falls_to_its_own_reader_and_to_the_other_when_it_is_overdue(
    inbox: Any,
) -> None:
    await inbox.roll_out("ups", OLD, 100)
    (message_id,) = await _put(inbox, 1)
    assert len(await inbox.claim(stage="raw", normalizer=OLD)) == 1
    await inbox.advance(31)
    assert await inbox.claim(stage="any") == [], (
        "the lease has ended, and nobody else may have it yet"
    )
    (rescued,) = await inbox.claim(stage="raw", normalizer=OLD)
    assert (rescued.message_id, rescued.rescued_from) == (message_id, "w")
    await inbox.advance(61)
    (taken,) = await inbox.claim(stage="any")
    assert (taken.message_id, taken.fallback_for) == (message_id, OLD)


async def test_a_bounded_carrier_is_bounded_for_both_of_its_readers_together(inbox: Any) -> None:
    await inbox.roll_out("ups", OLD, 50)
    await inbox.set_quota("ups", in_flight_max=10)
    await _put(inbox, 100)
    assert len(await inbox.claim(6, stage="any")) == 6
    assert len(await inbox.claim(64, stage="raw", normalizer=OLD)) == 4
    assert await inbox.claim(64, stage="any") == []


@pytest.mark.parametrize("percent", [1, 50, 99])
async def test_a_shared_carrier_that_floods_leaves_the_others_their_part_of_each_claim(
    inbox: Any, percent: int
) -> None:
    await inbox.roll_out("ups", OLD, percent)
    await _put(inbox, 400)
    for stage, named in (("any", {}), ("raw", {"normalizer": OLD})):
        quiet = await _put(inbox, 2, "fedex")
        claimed = await inbox.claim(8, stage=stage, **named)
        assert quiet <= {message.message_id for message in claimed}
        assert len(claimed) == 8 or percent != 50


async def _pages(inbox: Any, **asked: Any) -> int:
    """Return pages that a claim touches: the least of a few, since a vacuum meanwhile keeps dead
    index entries alive.
    """
    arguments = ", ".join(f"p_{name} => '{value}'" for name, value in asked.items())
    query = f"SELECT * FROM statesvc.claim('w', 64, '30 s', {arguments})"
    pages: list[int] = []
    for _ in range(_TRIES):
        await inbox.rows(query)
        (found,) = await inbox.value(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {query}")
        pages.append(found["Plan"]["Shared Hit Blocks"] + found["Plan"]["Shared Read Blocks"])
    return min(pages)


async def test_neither_reader_walks_the_others_backlog(inbox: Any) -> None:
    # an ANALYZE by autovacuum keeps a snapshot, and while it lasts no claim may skip the dead
    # entries of those before it
    await inbox.as_owner("ALTER TABLE statesvc.inbox SET (autovacuum_enabled = off)")
    await inbox.connection.execute("INSERT INTO statesvc.lane (carrier_id) VALUES ('ups')")
    await inbox.connection.execute(FILL, {"carrier_id": "ups", "rows": BACKLOG, "stage": "raw"})
    await inbox.as_owner("ANALYZE statesvc.inbox")
    await inbox.roll_out("ups", OLD, 1)
    theirs = {"stage": "raw", "normalizer": OLD}
    await inbox.claim(1, stage="any")
    assert await _pages(inbox, **theirs) < PAGES_MAX
    await _all(inbox, limit=1_000, bytes_max=1 << 30, **theirs)
    assert not await inbox.share("ups", 1) - {
        message_id
        for (message_id,) in await inbox.rows(
            "SELECT message_id FROM statesvc.inbox WHERE token IS NOT NULL"
        )
    }
    assert await _pages(inbox, **theirs) < PAGES_MAX
    assert await _pages(inbox, stage="any") < PAGES_MAX
    await inbox.roll_out("ups", OLD, 50)
    while len(await inbox.claim(5_000, stage="any", bytes_max=1 << 30)) == 5_000:
        pass
    assert await _pages(inbox, stage="any") < PAGES_MAX
    assert await _pages(inbox, **theirs) < PAGES_MAX
