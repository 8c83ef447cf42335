"""A journal gives back each frame that it acknowledged, whatever ended the process that wrote it."""

from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from statesvc.spool.journal import Journal, JournalInUseError
from tests.statesvc.spool.conftest import Disk


def frames(journal: Journal, place: int = 0) -> list[bytes]:
    found = []
    while (read := journal.read(place)) is not None:
        payload, place = read
        found.append(payload)
    return found


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.journal"))


def test_frames_are_read_in_their_order_over_segments_and_processes(tmp_path: Path) -> None:
    with closing(Journal(tmp_path / "a", segment_bytes=50)) as journal:
        for number in range(10):
            journal.append(b"frame %d" % number)
        assert frames(journal) == [b"frame %d" % number for number in range(10)]
        assert len(segments(tmp_path / "a")) > 1
    with closing(Journal(tmp_path / "a")) as journal:
        journal.append(b"later")
        assert frames(journal)[-2:] == [b"frame 9", b"later"]


def test_reading_goes_on_behind_a_place(tmp_path: Path) -> None:
    with closing(Journal(tmp_path / "a", segment_bytes=50)) as journal:
        places = [journal.append(b"frame %d" % number) for number in range(10)]
        assert [len(frames(journal, place)) for place in places] == [*range(9, -1, -1)]


def test_segments_without_a_frame_behind_the_place_are_dropped(tmp_path: Path) -> None:
    with closing(Journal(tmp_path / "a", segment_bytes=50)) as journal:
        places = [journal.append(b"frame %d" % number) for number in range(10)]
        journal.drop_before(places[4])
        assert frames(journal)[-5:] == [b"frame %d" % number for number in range(5, 10)]
        journal.drop_before(places[9])
        assert (segments(tmp_path / "a"), journal.size) == ([], 0)
        assert journal.append(b"next") > places[9], "a place is never used again"
        assert frames(journal, places[9]) == [b"next"]


def test_a_process_holds_its_journal_alone(tmp_path: Path) -> None:
    with closing(Journal(tmp_path / "a")), pytest.raises(JournalInUseError):
        Journal(tmp_path / "a")
    Journal(tmp_path / "a").close()


@pytest.mark.parametrize("torn_bytes", [0, 1, 11, 12, 13, 20])
def test_a_power_loss_keeps_what_was_synced_and_drops_a_torn_end(
    tmp_path: Path, torn_bytes: int
) -> None:
    disk = Disk(tmp_path)
    journal = Journal(tmp_path / "a", sync=disk.sync)
    journal.append(b"first")
    journal.append(b"second")
    journal._sync = lambda _descriptor: None  # noqa: SLF001 - the disk loses this write
    journal.append(b"written and never synced")
    journal.close()
    disk.lose_power(torn_bytes=torn_bytes)
    with closing(Journal(tmp_path / "a", sync=disk.sync)) as journal:
        assert frames(journal) == [b"first", b"second"]
        place = journal.append(b"third")
        assert frames(journal) == [b"first", b"second", b"third"]
        journal.drop_before(place)
        assert journal.size == 0, "a torn end holds no segment"


def test_a_damaged_frame_hides_no_later_one_and_is_reported(tmp_path: Path) -> None:
    with closing(Journal(tmp_path / "a")) as journal:
        for number in range(3):
            journal.append(b"frame %d" % number)
    (path,) = segments(tmp_path / "a")
    path.write_bytes(path.read_bytes().replace(b"frame 1", b"frAme 1"))
    with closing(Journal(tmp_path / "a")) as journal, capture_logs() as logs:
        assert frames(journal) == [b"frame 0", b"frame 2"]
    assert [line["event"] for line in logs] == ["spool_damaged"]


def test_a_failed_sync_is_never_acknowledged_nor_built_upon(tmp_path: Path) -> None:
    failing = False

    def sync(_descriptor: int) -> None:
        if failing:
            raise OSError(28, "No space left on device")

    with closing(Journal(tmp_path / "a", sync=sync)) as journal:
        journal.append(b"first")
        failing = True
        with pytest.raises(OSError, match="No space left"):
            journal.append(b"refused")
        failing = False
        journal.append(b"second")
        assert frames(journal) == [b"first", b"second"]
        assert len(segments(tmp_path / "a")) == 2
