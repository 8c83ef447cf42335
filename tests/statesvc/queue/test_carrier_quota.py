"""Weights and bounds of carriers, and which rows a claim locks."""

import asyncio
from collections import Counter
from typing import Any

from psycopg import AsyncConnection

MIB = 1 << 20
CLAIM = "SELECT carrier_id FROM statesvc.claim(%s, 7, interval '600 s', 'any')"
IN_FLIGHT = (
    "SELECT count(*) FROM statesvc.inbox WHERE worker IS NOT NULL AND carrier_id = 'bounded'"
)


def by_carrier(claimed: list[Any]) -> dict[str, int]:
    return dict(Counter(message.carrier_id for message in claimed))


async def test_a_weight_gives_its_share_from_the_next_claim_on_and_what_it_leaves_goes_to_others(
    inbox: Any,
) -> None:
    await inbox.put(*["heavy"] * 200, *["light"] * 200)
    assert by_carrier(await inbox.claim(60)) == {"heavy": 30, "light": 30}
    await inbox.set_quota("heavy", weight=5)
    assert by_carrier(await inbox.claim(60)) == {"heavy": 50, "light": 10}
    await inbox.set_quota("heavy", weight=0.01)
    assert by_carrier(await inbox.claim(60))["light"] >= 58
    await inbox.set_quota("idle", weight=100)
    await inbox.put("idle")
    assert sum(by_carrier(await inbox.claim(60)).values()) == 60


async def test_what_is_left_over_is_shared_by_all_that_have_more(inbox: Any) -> None:
    await inbox.put(*["a"] * 100, *["b"] * 100, "c", "d", "e", "f")
    taken = by_carrier(await inbox.claim(64))
    assert {taken[carrier_id] for carrier_id in "cdef"} == {1}
    assert {taken["a"], taken["b"]} == {30}


async def test_a_light_carrier_is_served_in_its_turn_among_more_carriers_than_places(
    inbox: Any,
) -> None:
    await inbox.set_quota("light", weight=0.2)
    await inbox.put(
        *(carrier_id for n in range(10) for carrier_id in [f"c{n}"] * 60), *["light"] * 60
    )
    served: Counter[str] = Counter()
    # about one claim in thirty reaches it
    for _ in range(250):
        served.update(m.carrier_id for m in await inbox.claim(2))
    assert 0 < served["light"] < min(served[f"c{n}"] for n in range(10))


async def test_what_is_parked_waits_for_room_like_any_other(inbox: Any) -> None:
    ((parked, _),) = await inbox.put("bounded")
    await inbox.claim()
    await inbox.expire()
    (rescued,) = await inbox.claim()
    await inbox.put("bounded")
    await inbox.retry(rescued.token, parked, seconds=50)
    await inbox.set_quota("bounded", in_flight_max=1)
    (ready,) = await inbox.claim(lease=600)
    await inbox.advance(60)
    assert await inbox.claim(sweep=True) == []
    await inbox.bury(ready.token, ready.message_id)
    assert [m.message_id for m in await inbox.claim()] == [parked]


async def test_a_carrier_that_another_claim_is_counting_gets_none_and_its_mark_stays(
    inbox: Any, other: Any
) -> None:
    await inbox.set_quota("bounded", in_flight_max=3)
    await inbox.put(*["bounded"] * 10, "free")
    await inbox.advance(60)
    async with inbox.connection.transaction():
        assert by_carrier(await inbox.claim(2)) in ({"bounded": 2}, {"bounded": 1, "free": 1})
        assert "bounded" not in by_carrier(await other.claim())
    assert await inbox.value(
        "SELECT low_water FROM statesvc.lane WHERE carrier_id = 'bounded'"
    ) < await inbox.value("SELECT min(available_at) FROM statesvc.inbox")
    await other.claim()
    assert await inbox.value(IN_FLIGHT) == 3


async def test_the_bound_holds_under_claims_at_the_same_time_and_nothing_is_stranded(
    database: Any, inbox: Any
) -> None:
    """Eight clients claim and give up as fast as they can; after every step the count is looked
    at.
    """
    await inbox.set_quota("bounded", in_flight_max=5)
    await inbox.put(*["bounded"] * 120, *["free"] * 120)
    seen = []

    async def client(name: str) -> None:
        async with await AsyncConnection.connect(
            database.service_dsn, autocommit=True
        ) as connection:
            for _ in range(40):
                await (await connection.execute(CLAIM, (name,))).fetchall()
                seen.append((await (await connection.execute(IN_FLIGHT)).fetchone() or (99,))[0])
                await connection.execute("DELETE FROM statesvc.inbox WHERE worker = %s", (name,))

    await asyncio.gather(*(client(f"w{n}") for n in range(8)))
    assert max(seen) <= 5
    assert await inbox.value("SELECT count(*) FROM statesvc.inbox") == 0


async def _locked(inbox: Any, other: Any, **asked: Any) -> tuple[int, int]:
    """Return how many messages an open claim took, and how many rows others cannot lock
    meanwhile.
    """
    free = "WITH f AS (SELECT 1 FROM statesvc.inbox FOR UPDATE SKIP LOCKED) SELECT count(*) FROM f"
    async with inbox.connection.transaction():
        taken = len(await inbox.claim(**asked))
        locked = await inbox.value("SELECT count(*) FROM statesvc.inbox") - await other.value(free)
    return taken, locked


async def test_a_claim_locks_no_row_that_it_does_not_claim(inbox: Any, other: Any) -> None:
    await inbox.put(*["heavy"] * 20, *["light"] * 20, body_bytes=MIB)
    await inbox.put(*["bounded"] * 20)
    await inbox.set_quota("bounded", in_flight_max=2)
    assert await _locked(inbox, other, limit=9, bytes_max=64 * MIB) == (9, 9)
    assert await _locked(inbox, other, bytes_max=4 * MIB) in {(4, 4), (5, 5)}
    assert await _locked(inbox, other, bytes_max=1) == (1, 1)
    await inbox.expire()
    assert await _locked(inbox, other) == (1, 1)


async def test_a_claim_beside_another_takes_what_lies_beyond_it(inbox: Any, other: Any) -> None:
    put = sorted(message_id for message_id, _ in await inbox.put(*["ups"] * 100))
    async with inbox.connection.transaction():
        first = {m.message_id for m in await inbox.claim(40)}
        second = {m.message_id for m in await other.claim(40)}
    assert first == set(put[:40])
    assert second == set(put[40:80])
