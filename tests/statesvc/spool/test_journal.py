"""A journal gives back each frame that it acknowledged, whatever ended the process that wrote it."""

from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from statesvc.spool.journal import Journal
from tests.statesvc.spool.conftest import Disk


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
