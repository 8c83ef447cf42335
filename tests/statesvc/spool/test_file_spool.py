"""The file store keeps each message until it is settled, within its bounds."""

import asyncio
import resource
import threading
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from events.crypto.keyring import Keyring
from statesvc.bodies.sealed_message import message_id, unix_ms_of
from statesvc.spool.file_spool import FileSpool
from statesvc.spool.journal import Journal
from statesvc.spool.spool import SpoolBounds, SpooledMessage, SpoolRefusedError
from tests.statesvc.spool.conftest import Disk, sealed

BOUNDS = SpoolBounds(bytes_max=1_000_000, age_seconds_max=3600)
# As the database has them.
PLACES: defaultdict[str, int] = defaultdict(int)


@pytest.fixture
async def spool(tmp_path: Path) -> AsyncIterator[FileSpool]:
    spool = FileSpool(tmp_path, BOUNDS)
    yield spool
    await spool.close()


async def drained(spool: FileSpool) -> list[SpooledMessage]:
    """Read and settle all, as a drain does."""
    found: list[SpooledMessage] = []
    for source in await spool.sources():
        while (portion := await source.read(PLACES[source.name])) is not None:
            found += portion.messages
            PLACES[source.name] = portion.end
            await source.settle(portion.end)
            await source.depth(portion.end)
        if source.has_ended:
            await spool.forget(source)
    return found


async def test_messages_come_back_as_they_were_sealed(spool: FileSpool, keyring: Keyring) -> None:
    messages = [sealed(keyring, str(number)) for number in range(300)]
    ids = await asyncio.gather(*(spool.keep(message) for message in messages))
    assert ids == [one.message.message_id for one in messages]
    assert await drained(spool) == messages
    assert await drained(spool) == []


async def test_a_retry_is_answered_with_the_first_id(spool: FileSpool, keyring: Keyring) -> None:
    first = await spool.keep(sealed(keyring, "a"))
    assert await spool.keep(sealed(keyring, "a")) == first
    assert len(await drained(spool)) == 1


async def test_another_process_drains_the_journal_of_one_that_ended(
    tmp_path: Path, keyring: Keyring
) -> None:
    dead, other = FileSpool(tmp_path, BOUNDS), FileSpool(tmp_path, BOUNDS)
    messages = [sealed(keyring, str(number)) for number in range(3)]
    for message in messages:
        await dead.keep(message)
    assert await drained(other) == [], "it lives"
    await dead.close()
    assert await drained(other) == messages
    assert len(await asyncio.to_thread(files, tmp_path)) == 1, "its folder went"
    await other.close()


async def test_a_full_spool_refuses_until_it_is_drained(tmp_path: Path, keyring: Keyring) -> None:
    spool = FileSpool(tmp_path, SpoolBounds(bytes_max=3000, age_seconds_max=3600))
    await spool.keep(sealed(keyring, "a" * 1000))
    with pytest.raises(SpoolRefusedError, match="full"):
        await spool.keep(sealed(keyring, "b" * 2500))
    await drained(spool)
    await spool.keep(sealed(keyring, "b" * 2500))
    await spool.close()


async def test_while_its_oldest_message_is_too_old_it_refuses(
    spool: FileSpool, keyring: Keyring
) -> None:
    message = sealed(keyring, "a")
    old_id = message_id(unix_ms_of(message.message.message_id) - 3_601_000, b"0123456789")
    await spool.keep(replace(message, message=replace(message.message, message_id=old_id)))
    assert spool.refusal() == "its oldest message waits for too long"
    with pytest.raises(SpoolRefusedError):
        await spool.keep(sealed(keyring, "b"))
    await drained(spool)
    for source in await spool.sources():
        await source.depth(2**62)
    assert spool.refusal() is None


async def test_a_full_disk_refuses_and_loses_nothing_kept(
    spool: FileSpool, keyring: Keyring
) -> None:
    first = sealed(keyring, "first")
    await spool.keep(first)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(SpoolRefusedError):
            await spool.keep(sealed(keyring, "b" * 100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    last = sealed(keyring, "last")
    await spool.keep(last)
    assert await drained(spool) == [first, last]


async def test_a_failed_sync_is_never_acknowledged_nor_built_upon(
    tmp_path: Path, keyring: Keyring
) -> None:
    failing = False

    def sync(_descriptor: int) -> None:
        if failing:
            raise OSError(28, "No space left on device")

    spool = FileSpool(tmp_path, BOUNDS, sync=sync)
    first, last = sealed(keyring, "first"), sealed(keyring, "last")
    await spool.keep(first)
    failing = True
    for _ in range(3):
        with pytest.raises(SpoolRefusedError, match="No space left"):
            await spool.keep(sealed(keyring, "refused"))
    failing = False
    await spool.keep(last)
    assert len(await asyncio.to_thread(files, tmp_path)) == 2
    assert await drained(spool) == [first, last]
    await spool.close()


async def test_a_disk_that_hangs_fills_no_memory_with_messages_that_nobody_waits_for(
    tmp_path: Path, keyring: Keyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("statesvc.spool.spool.PENDING_BYTES_MAX", 3000)
    hangs = threading.Event()
    spool = FileSpool(tmp_path, BOUNDS, sync=lambda _descriptor: (hangs.wait(), None)[1])
    try:
        for body in "ab":
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(spool.keep(sealed(keyring, body * 1000)), 0.05)
        with pytest.raises(SpoolRefusedError, match="does not keep up"):
            await spool.keep(sealed(keyring, "c" * 1000))
    finally:
        hangs.set()
    await spool.keep(sealed(keyring, "d"))
    assert spool.refusal(2900) is None
    await spool.close()


async def test_a_first_message_that_fails_leaves_no_journal_that_the_database_waits_for(
    tmp_path: Path, keyring: Keyring
) -> None:
    failing = True

    def sync(_descriptor: int) -> None:
        if failing:
            raise OSError(5, "Input/output error")

    spool = FileSpool(tmp_path, BOUNDS, sync=sync)
    before = await spool.sources()
    for _ in range(3):
        with pytest.raises(SpoolRefusedError, match="Input/output error"):
            await spool.keep(sealed(keyring, "refused" * 99))
    assert await drained(spool) == []
    failing = False
    last = sealed(keyring, "last")
    await spool.keep(last)
    assert await spool.sources() == before
    await spool.close()
    other = FileSpool(tmp_path, BOUNDS)
    assert await drained(other) == [last], "nothing is behind it"
    await other.close()


async def test_what_a_database_lost_in_a_failover_is_read_again(
    spool: FileSpool, keyring: Keyring
) -> None:
    message = sealed(keyring, "a")
    await spool.keep(message)
    (source,) = await spool.sources()
    portion = await source.read(0)
    await source.settle(2**62)
    await source.settle(0)
    assert await source.read(0) == portion


async def test_a_drained_journal_is_removed_and_another_begun_of_which_the_database_hears(
    tmp_path: Path, keyring: Keyring
) -> None:
    spool = FileSpool(tmp_path, BOUNDS)
    for body in "ab":
        await spool.keep(sealed(keyring, body))
        assert len(await drained(spool)) == 1
        assert await drained(spool) == []
        assert [data for _, data in await asyncio.to_thread(files, tmp_path)] == [b""]
        (source,) = await spool.sources()
        assert not source.has_ended
    await spool.close()


async def test_messages_stay_for_as_long_as_they_are_kept(tmp_path: Path, keyring: Keyring) -> None:
    bounds = SpoolBounds(bytes_max=1_000_000, age_seconds_max=3600, keep_seconds=600)
    spool = FileSpool(tmp_path, bounds)
    message = sealed(keyring, "a")
    await spool.keep(message)
    assert await drained(spool) == [message]
    PLACES.clear()
    assert await drained(spool) == [message]
    (source,) = await spool.sources()
    assert (await source.depth(2**62)).messages == 0
    await spool.close()


async def test_its_files_are_for_their_owner_alone(tmp_path: Path, keyring: Keyring) -> None:
    spool = FileSpool(tmp_path / "spool", BOUNDS)
    await spool.keep(sealed(keyring, "a secret of the parcel"))
    for path, data in await asyncio.to_thread(files, tmp_path / "spool"):
        assert path.stat().st_mode & 0o077 == 0
        assert b"secret" not in data
    await spool.close()


def files(folder: Path) -> list[tuple[Path, bytes]]:
    return [(path, path.read_bytes()) for path in folder.rglob("*") if path.is_file()]


def frames(journal: Journal, place: int = 0) -> list[bytes]:
    found = []
    while (frame := journal.read(place)) is not None:
        place = frame.end
        found.append(frame.payload)
    return found


def test_frames_are_read_in_their_order_behind_any_place_and_in_a_later_process(
    tmp_path: Path,
) -> None:
    with closing(Journal.begin(tmp_path)) as journal:
        ends = []
        for number in range(10):
            journal.append(b"frame %d" % number, messages=number)
            ends.append(journal.size)
        assert frames(journal) == [b"frame %d" % number for number in range(10)]
        assert [len(frames(journal, place)) for place in ends] == [*range(9, -1, -1)]
    with closing(Journal(journal.path)) as found:
        assert frames(found, ends[7]) == [b"frame 8", b"frame 9"]
        assert (found.size, found.total) == (ends[-1], 45)


def test_a_process_holds_its_journal_alone_until_it_is_removed(tmp_path: Path) -> None:
    with closing(Journal.begin(tmp_path)) as journal:
        with pytest.raises(BlockingIOError):
            Journal(journal.path)
        later = Journal.begin(tmp_path)
        assert later.path > journal.path
        later.remove()
        with pytest.raises(FileNotFoundError):
            Journal(later.path)
    Journal(journal.path).close()


@pytest.mark.parametrize("torn_bytes", [0, 1, 11, 12, 16, 17, 20])
def test_a_power_loss_keeps_what_was_synced_and_drops_a_torn_end(
    tmp_path: Path, torn_bytes: int
) -> None:
    disk = Disk(tmp_path)
    journal = Journal.begin(tmp_path, sync=disk.sync)
    journal.append(b"first", 1)
    journal.append(b"second", 1)
    sound = journal.size
    journal._sync = lambda _descriptor: None  # noqa: SLF001 - the disk loses this write
    journal.append(b"written and never synced", 1)
    journal.close()
    disk.lose_power(torn_bytes=torn_bytes)
    with closing(Journal(journal.path)) as found:
        assert frames(found) == [b"first", b"second"]
        assert (found.size, found.total) == (sound, 2), "a torn end holds no journal"


def test_a_damaged_frame_hides_no_later_one_and_is_reported(tmp_path: Path) -> None:
    with closing(Journal.begin(tmp_path)) as journal:
        for number in range(3):
            journal.append(b"frame %d" % number, 1)
    journal.path.write_bytes(journal.path.read_bytes().replace(b"frame 1", b"frAme 1"))
    with capture_logs() as logs, closing(Journal(journal.path)) as found:
        assert frames(found) == [b"frame 0", b"frame 2"]
    assert {line["event"] for line in logs} == {"spool_damaged"}
