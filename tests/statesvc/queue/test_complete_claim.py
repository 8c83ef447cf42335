"""A claim says whether it left anything that is ready: a worker then waits for a wake-up
instead of claiming again.
"""

from typing import Any

CLAIM = (
    "SELECT message_id, complete FROM statesvc.claim('w', {limit}, '30 s', 'any', p_report_complete"
    " => true)"
)


async def complete(inbox: Any, *, limit: int = 64) -> tuple[int, set[bool]]:
    rows = await inbox.rows(CLAIM.format(limit=limit))
    return sum(message_id is not None for message_id, _ in rows), {said for _, said in rows}


async def test_a_claim_of_all_that_is_ready_says_so(inbox: Any) -> None:
    # the first one moves the marks
    await complete(inbox)
    for carrier_id in ("ups", "fedex"):
        await inbox.put(carrier_id)
    assert await complete(inbox) == (2, {True})
    assert await complete(inbox) == (0, {True})


async def test_a_claim_that_leaves_something_does_not(inbox: Any) -> None:
    await complete(inbox)
    for _ in range(3):
        await inbox.put("ups")
    assert await complete(inbox, limit=2) == (2, {False})


async def test_a_claim_that_a_bound_keeps_from_more_does_not(inbox: Any) -> None:
    await complete(inbox)
    await inbox.as_owner(
        "INSERT INTO statesvc.carrier_quota (carrier_id, in_flight_max, changed_at, changed_by)"
        " VALUES ('ups', 1, now(), 'test')"
    )
    for _ in range(2):
        await inbox.put("ups")
    assert await complete(inbox) == (1, {False})
