"""Size of a claim: it grows with a backlog, up to a time of the loop."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

from statesvc.queue.claim import Message
from statesvc.worker.batch_size import BATCH_SECONDS, BatchSize, split_by_volume

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
    return [
        replace(ONE, message_id=uuid4(), carrier_id=carrier_id)
        for carrier_id, count in counts.items()
        for _ in range(count)
    ]


def test_a_quiet_carrier_goes_ahead_of_a_busy_one() -> None:
    quiet, rest = split_by_volume(claimed(ups=60, gls=1, dpd=3))
    assert {message.carrier_id for message in quiet} == {"gls", "dpd"}
    assert len(rest) == 60


def test_where_all_are_alike_nobody_goes_ahead() -> None:
    for messages in (claimed(ups=64), claimed(ups=30, gls=34), claimed(ups=2, gls=1)):
        assert split_by_volume(messages) == [messages]
    assert split_by_volume([]) == []


def test_a_small_claim_is_one_batch() -> None:
    messages = claimed(ups=59, gls=1, dpd=3)
    assert split_by_volume(messages) == [messages]


def test_more_than_a_few_messages_are_not_quiet() -> None:
    quiet, _ = split_by_volume(claimed(ups=100, gls=17, dpd=16))
    assert {message.carrier_id for message in quiet} == {"dpd"}


def test_batches_grow_with_the_backlog_and_shrink_with_it() -> None:
    size = BatchSize(least=64, most=512)
    sizes = []
    for messages in (64, 128, 256, 512, 512, 40, 40, 3):
        size.claimed(messages)
        sizes.append(size.size)
    assert sizes == [128, 256, 512, 512, 512, 256, 128, 64]


def test_a_batch_takes_the_loop_for_its_time_and_no_longer_whatever_a_message_costs() -> None:
    size = BatchSize(least=64, most=512)
    for _ in range(20):
        size.worked(size.size, loop_seconds=size.size * 400e-6)
        size.claimed(size.size)
    assert size.size == round(BATCH_SECONDS / 400e-6)
    for _ in range(20):
        # histories of ten scans each
        size.worked(size.size, loop_seconds=size.size * 1e-3)
        size.claimed(size.size)
    assert size.size == round(BATCH_SECONDS / 1e-3)
    for _ in range(20):
        size.worked(size.size, loop_seconds=size.size * 1.0)
        size.claimed(size.size)
    assert size.size == 16, "not one by one: a transaction has its own cost"


def test_a_batch_of_a_few_says_nothing_about_the_cost_of_a_message() -> None:
    size = BatchSize(least=64, most=512)
    size.worked(1, loop_seconds=1.0)
    assert size.bound == 512
