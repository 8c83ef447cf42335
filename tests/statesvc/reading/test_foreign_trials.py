"""Another fleet's reading of a carrier: it is tried in the shadow, given a share, and turned
back.
"""

from typing import Any

import pytest

from statesvc.privacy.erasure import Erasure, erase
from statesvc.reading.foreign_readings import list_readings, unread_shares
from statesvc.reading.rollout_store import RolloutSettings, refusals, set_rollout
from statesvc.reading.trials import drop_trials, list_differences, totals_of
from statesvc.worker.trial_evidence import compare_handed_over
from tests.statesvc.reading.foreign_fleet import Fleet
from tests.statesvc.reading.planted import CARRIER, MISREAD, wrong
from tests.world.worker_harness import CARRIER_ID, WorkerHarness, push_body

pytestmark = pytest.mark.slow

OLD = "old@1"
NEWEST = 2**63 - 1


async def change_rollout(
    harness: WorkerHarness,
    candidate: str | None = OLD,
    percent: int = 0,
    *,
    force: bool = False,
    **more: Any,
) -> None:
    await set_rollout(
        harness.connection,
        CARRIER_ID,
        RolloutSettings(candidate=candidate, percent=percent, **more),
        why="test",
        actor="tester",
        force=force,
    )


async def push(harness: WorkerHarness, count: int, *, misread: int = 0) -> set[Any]:
    bodies = [
        push_body(
            {"number": f"N{n}", "status": "in_transit", "code": MISREAD if n < misread else "X1"},
            envelope=object().__hash__(),
        )
        for n in range(count)
    ]
    return set(await harness.push(*bodies))


async def compare(harness: WorkerHarness) -> int:
    total = 0
    while compared := await compare_handed_over(harness.context, harness.connection):
        total += compared
    return total


async def differences(harness: WorkerHarness) -> list[tuple[str, str | None, str | None]]:
    found, _ = await list_differences(
        harness.connection, CARRIER_ID, candidate=None, before=NEWEST, limit=100
    )
    return [(each.field, each.stable_value, each.candidate_value) for each in found]


async def readers(harness: WorkerHarness) -> dict[str, int]:
    return dict(
        await harness.rows("SELECT normalizer, count(*)::int FROM statesvc.message GROUP BY 1")
    )


async def trials(harness: WorkerHarness) -> int:
    return int(await harness.value("SELECT count(*) FROM statesvc.trial"))


async def test_the_shadow_has_no_effect_and_finds_the_planted_difference(
    harness: WorkerHarness,
) -> None:
    fleet = Fleet(harness, OLD, wrong)
    await change_rollout(harness, shadow=True)
    put = await push(harness, 10, misread=3)
    assert await fleet.read() == set()
    await harness.work()
    assert await readers(harness) == {"acme@1": 10}
    assert await fleet.read("trial") == put
    assert await compare(harness) == 10
    assert await differences(harness) == [("status", "in_transit", "delivered")] * 3
    totals = await totals_of(harness.connection, CARRIER_ID, OLD)
    assert (totals.messages, totals.errors, totals.differing, totals.fields) == (
        10,
        0,
        3,
        {"status": 3},
    )
    assert await trials(harness) == 0
    assert {status for (status,) in await harness.rows("SELECT status FROM statesvc.shipment")} == {
        "in_transit"
    }


async def test_a_share_takes_effect_and_the_rest_is_tried(harness: WorkerHarness) -> None:
    fleet = Fleet(harness, OLD)
    await change_rollout(harness, percent=50, shadow=True)
    put = await push(harness, 60)
    share = {
        m
        for (m,) in await harness.rows(
            "SELECT message_id FROM statesvc.inbox WHERE statesvc.in_share(message_id,"
            " carrier_id, 50)"
        )
    }
    assert await fleet.read() == share
    await harness.work()
    assert await readers(harness) == {"acme@1": 60 - len(share), OLD: len(share)}
    assert await fleet.read("trial") == put - share
    await compare(harness)
    assert await differences(harness) == []


@pytest.mark.parametrize("candidate", ["1", "2"])
async def test_ours_strangles_another_fleets_stable_reading(
    harness: WorkerHarness, candidate: str
) -> None:
    fleet = Fleet(harness, OLD)
    await change_rollout(harness, candidate, stable=OLD, shadow=True)
    put = await push(harness, 60, misread=60)
    assert await harness.work() == 0
    assert await fleet.read() == put
    await harness.work()
    assert await readers(harness) == {OLD: 60}
    totals = await totals_of(harness.connection, CARRIER_ID, candidate)
    assert (totals.messages, totals.fields) == (60, {"status": 60} if candidate == "2" else {})
    await change_rollout(harness, candidate, 50, stable=OLD, force=True)
    put = await push(harness, 60)
    await harness.work()
    ours = {
        m
        for (m,) in await harness.rows(
            "SELECT message_id FROM statesvc.message WHERE normalizer = %s", f"acme@{candidate}"
        )
    }
    theirs = await fleet.read()
    assert ours | theirs == put
    share = {
        m
        for (m,) in await harness.rows(
            "SELECT m FROM unnest(%s::uuid[]) m WHERE statesvc.in_share(m, 'acme', 50)", sorted(put)
        )
    }
    assert ours == share


async def test_a_trial_that_is_declined_or_refused_counts_as_an_error(
    harness: WorkerHarness,
) -> None:
    fleet = Fleet(harness, OLD)
    await change_rollout(harness, shadow=True)
    await push(harness, 2)
    await harness.work()
    claimed = await fleet.claim("trial")
    ids = [row[0] for row in claimed]
    assert (
        await harness.value("SELECT statesvc.decline(%s, %s::uuid[])", claimed[0][1], ids[:1]) == 1
    )
    refused = f'[{{"message_id": "{ids[1]}", "normalizer": "{OLD}", "events": "AAEC"}}]'
    assert await harness.value("SELECT statesvc.settle(%s, %s::jsonb)", claimed[0][1], refused) == 1
    await compare(harness)
    totals = await totals_of(harness.connection, CARRIER_ID, OLD)
    assert (totals.messages, totals.errors, totals.fields) == (2, 2, {"verdict": 2})
    shown = [candidate or "" for _, _, candidate in await differences(harness)]
    assert sorted(text.partition(":")[0] for text in shown) == ["declined", "normalizer_failed"]


async def test_a_trial_that_was_given_back_or_whose_lease_ended_waits_again_at_most_five_times(
    harness: WorkerHarness,
) -> None:
    fleet = Fleet(harness, OLD)
    await change_rollout(harness, shadow=True)
    await push(harness, 1)
    await harness.work()
    for _ in range(5):
        ((_, token, *_),) = await fleet.claim("trial")
        assert await fleet.claim("trial") == []
        assert await harness.value("SELECT statesvc.extend(%s, '40 s')", token) == 1
        await harness.database.clock.advance(41)
    assert await fleet.claim("trial") == []
    await drop_trials(harness.connection, [CARRIER_ID], worker="w")
    assert await trials(harness) == 0


async def test_the_oldest_trials_are_dropped_and_counted(harness: WorkerHarness) -> None:
    await change_rollout(harness, shadow=True)
    await push(harness, 5)
    await harness.work()
    kept = await harness.rows("SELECT trial_id FROM statesvc.trial ORDER BY trial_id DESC LIMIT 3")
    await drop_trials(harness.connection, [CARRIER_ID], worker="w", keep=3)
    assert await harness.rows("SELECT trial_id FROM statesvc.trial ORDER BY trial_id DESC") == kept
    await harness.database.clock.advance(3_601)
    assert await Fleet(harness, OLD).claim("trial") == []
    await drop_trials(harness.connection, [CARRIER_ID], worker="w", keep=3)
    assert await trials(harness) == 0
    assert (await totals_of(harness.connection, CARRIER_ID, OLD)).dropped == 5


async def test_an_erasure_deletes_trials_and_what_was_handed_over(harness: WorkerHarness) -> None:
    fleet = Fleet(harness, OLD)
    await change_rollout(harness, shadow=True)
    await push(harness, 2)
    await harness.work()
    assert len(await fleet.claim("trial", 1)) == 1
    await fleet.read("trial")
    assert await harness.value("SELECT count(*) FROM statesvc.trial WHERE sealed IS NOT NULL") == 1
    for number in ("N0", "N1"):
        erasure = Erasure(
            carrier_id=CARRIER_ID, tracking_number=number, why="test", actor="tester", backup_days=1
        )
        await erase(harness.connection, erasure)
    assert await trials(harness) == 0
    await push(harness, 2)
    await harness.work()
    assert await trials(harness) == 0, "what comes later of an erased shipment is not tried either"


@pytest.mark.parametrize(
    ("stable", "candidate", "members"),
    [
        ("old", None, ["stable"]),
        ("acme@1", None, ["stable"]),
        (None, "old@", ["candidate"]),
        (None, "acme@2", ["candidate"]),
        (None, "1", ["candidate"]),
        (None, "none", ["candidate"]),
        (OLD, OLD, ["candidate"]),
        (OLD, "1", []),
        (OLD, None, []),
        (None, OLD, []),
    ],
)
def test_the_names_of_readings_are_checked(
    stable: str | None, candidate: str | None, members: list[str]
) -> None:
    assert [
        refused.member
        for refused in refusals(RolloutSettings(stable=stable, candidate=candidate), CARRIER)
    ] == members


async def test_it_says_whose_share_others_read_and_whose_nobody_does(
    harness: WorkerHarness,
) -> None:
    await change_rollout(harness, percent=50)
    await push(harness, 60)
    await harness.database.clock.advance(31)
    await harness.work()
    (left,) = unread_shares(await list_readings(harness.connection))
    assert not left.is_stuck
    assert (
        "old@1 reads 50 % and has never asked for any; 0 messages wait for it; our own workers took"
        in left.sentence
    )
    await change_rollout(harness, None, stable=OLD)
    await push(harness, 3)
    await harness.database.clock.advance(31)
    (left,) = [
        each for each in unread_shares(await list_readings(harness.connection)) if each.is_stuck
    ]
    assert left.sentence.endswith(
        "3 messages wait for it; no other reader has a share, so they wait"
    )
