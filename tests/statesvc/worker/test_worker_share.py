"""How much is claimed at once: it grows with a backlog, and stays small while somebody quiet would wait behind it."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

from statesvc.inbox.claim import Message
from statesvc.worker.share import QUIET_SECONDS, Growth, apart

ONE = Message(
    message_id=uuid4(),
    carrier_id="",
    token=uuid4(),
    attempts=1,
    retries=0,
    received_at=datetime.now(UTC),
    stage="raw",
    candidate=None,
    percent=0,
    shadow=False,
    sealed_key=b"",
    commitment=b"",
    sealed=b"",
)


def claimed(**counts: int) -> list[Message]:
    return [replace(ONE, message_id=uuid4(), carrier_id=carrier_id) for carrier_id, count in counts.items() for _ in range(count)]


def test_a_quiet_carrier_goes_ahead_of_a_loud_one() -> None:
    quiet, rest = apart(claimed(ups=60, gls=1, dpd=3))
    assert {message.carrier_id for message in quiet} == {"gls", "dpd"}
    assert len(rest) == 60


def test_where_all_are_alike_nobody_goes_ahead() -> None:
    assert not apart(claimed(ups=64))[0]
    assert not apart(claimed(ups=30, gls=34))[0]
    assert not apart(claimed(ups=2, gls=1))[0], "neither is loud"
    assert apart([]) == ([], [])


def test_batches_grow_while_nobody_quiet_is_seen_and_for_some_seconds_not_after() -> None:
    growth = Growth(least=64, most=512)
    sizes = []
    for now, quiet in ((0.0, False), (0.1, False), (0.2, False), (0.3, False), (0.4, True), (0.5, False), (0.4 + QUIET_SECONDS, False)):
        growth.claimed(growth.size, quiet=quiet, now=now)
        sizes.append(growth.size)
    assert sizes == [128, 256, 512, 512, 64, 64, 128]
    growth.claimed(3, quiet=False, now=60.0)
    assert growth.size == 64
