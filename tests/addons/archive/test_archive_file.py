import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statesvc.addons.archive.archive_file import (
    ArchiveFileError,
    ArchiveReader,
    ArchiveWriter,
    FinishedFile,
)
from statesvc.addons.archive.day import BODY_FILES
from statesvc.files.body_record import BodyRecord

DAY = date(2026, 3, 1)
BEGIN = "bodies-2026-03-01-a1b2c3d4"
MORNING = datetime(2026, 3, 1, 8, 0, 0, 123456, tzinfo=UTC)


def record(number: int, sealed: bytes = b"sealed") -> BodyRecord:
    return BodyRecord(
        message_id=UUID(int=number),
        received_at=MORNING + timedelta(microseconds=number % 1_000_000),
        carrier_id="acme",
        commitment=bytes([number % 256]) * 32,
        headers={"content-type": "application/json", "x-größe": "ß"},
        sealed=sealed,
    )


def write(path: Path, records: list[BodyRecord]) -> FinishedFile:
    with ArchiveWriter(path, DAY) as writer:
        for each in records:
            writer.add(each)
        return writer.finish()


@given(
    st.sets(st.integers(min_value=1, max_value=2**128 - 1), max_size=50), st.binary(max_size=300)
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_what_was_written_is_read_one_by_one_and_all_in_order(
    tmp_path: Path, numbers: set[int], sealed: bytes
) -> None:
    path = tmp_path / "file"
    path.unlink(missing_ok=True)
    records = [record(number, sealed) for number in sorted(numbers)]
    finished = write(path, records)
    assert finished.size_bytes == path.stat().st_size
    with ArchiveReader(path) as reader:
        assert reader.day == DAY
        assert list(reader) == records
        assert reader.sha256() == finished.sha256
        for each in records:
            assert reader.find(each.message_id) == each
        assert reader.find(UUID(int=0)) is None


def test_a_record_is_found_without_reading_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "file", [record(number, bytes(1000)) for number in range(1, 1025)])
    read: list[int] = []
    pread = os.pread

    def counted(descriptor: int, length: int, offset: int) -> bytes:
        read.append(length)
        return pread(descriptor, length, offset)

    with ArchiveReader(tmp_path / "file") as reader:
        monkeypatch.setattr(os, "pread", counted)
        assert reader.find(UUID(int=700)) == record(700, bytes(1000))
    assert sum(read) < 2_000


@pytest.mark.parametrize("place", [0, 20, 40, 100, 250, -100, -60, -40, -1])
def test_any_altered_byte_is_noticed(tmp_path: Path, place: int) -> None:
    path = tmp_path / "file"
    write(path, [record(number) for number in (1, 2, 3)])
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(ArchiveFileError), ArchiveReader(path) as reader:
        reader.sha256()


def test_a_file_that_is_cut_short_does_not_open(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write(path, [record(number) for number in (1, 2, 3)])
    whole = path.read_bytes()
    more_records = whole[:-50] + b"\x09" + whole[-49:]
    for content in (*(whole[:length] for length in (0, 10, 40, 100, len(whole) - 1)), more_records):
        path.write_bytes(content)
        with pytest.raises(ArchiveFileError):
            ArchiveReader(path)


def test_records_out_of_order_are_refused(tmp_path: Path) -> None:
    with ArchiveWriter(tmp_path / "file", DAY) as writer:
        writer.add(record(2))
        for number in (1, 2):
            with pytest.raises(ValueError, match="order"):
                writer.add(record(number))


def test_a_file_appears_under_its_name_only_when_it_is_complete(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    with (
        BODY_FILES.unfinished(folder, BEGIN) as files,
        ArchiveWriter(files.paths[0], DAY) as writer,
    ):
        writer.add(record(1))
        assert [path.suffix for path in folder.iterdir()] != [".ssb"]
    assert list(folder.iterdir()) == []
    with (
        BODY_FILES.unfinished(folder, BEGIN) as files,
        ArchiveWriter(files.paths[0], DAY) as writer,
    ):
        writer.add(record(1))
        finished = writer.finish()
        name = files.publish(finished.sha256)
    assert (
        [path.name for path in folder.iterdir()]
        == [name]
        == [BODY_FILES.file_name(BEGIN, finished.sha256)]
    )
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / name).stat().st_mode & 0o777 == 0o600


def test_what_a_crash_left_is_found_and_the_file_that_counts_is_not(tmp_path: Path) -> None:
    with (
        BODY_FILES.unfinished(tmp_path, BEGIN) as files,
        ArchiveWriter(files.paths[0], DAY) as writer,
    ):
        name = files.publish(writer.finish().sha256)
    nothing = f"{'0' * 16}.ssb.0a1b2c3d"
    crashed = tmp_path / f"{BEGIN}-{nothing}"
    other_day = tmp_path / f"bodies-2026-03-02-a1b2c3d4-{nothing}"
    other_installation = tmp_path / f"bodies-2026-03-01-d4c3b2a1-{'1' * 16}.ssb"
    for path in (crashed, other_day, other_installation, tmp_path / "notes.txt"):
        path.write_bytes(b"")
    assert BODY_FILES.leftovers(tmp_path, BEGIN, retained=name) == [crashed]
    assert {path.name for path in BODY_FILES.leftovers(tmp_path, BEGIN, retained=None)} == {
        crashed.name,
        name,
    }
