"""The check of the code tables against the carriers' public lists: it passes on the tree and fails
where a table forgets a code.
"""

import csv
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.code_lists import CARRIERS, LISTS, SOURCES, coverages, keys

pytestmark = pytest.mark.usefixtures("own_processes")

ROOT = Path(__file__).parents[1]
LISTED = sorted(path.name for path in (CARRIERS / LISTS).glob("*.csv") if path.name != SOURCES)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Copy the tables and lists."""
    copy = tmp_path / "carriers"
    shutil.copytree(CARRIERS, copy, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    return copy


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.code_lists", "--folder", str(folder)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False, encoding="utf-8")


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


def test_every_code_of_the_lists_is_mapped_or_waived() -> None:
    found = coverages()
    assert [row.table for row in found] == LISTED
    assert [fault for row in found for fault in row.faults] == []


def test_each_lists_coverage_is_printed(folder: Path) -> None:
    answer = check(folder)
    assert answer.returncode == 0, answer.stderr
    lines = answer.stdout.splitlines()
    assert [line.split()[0] + ".csv" for line in lines[:-1]] == LISTED
    assert all(line.endswith("100.0 %") for line in lines[:-1])


def test_the_check_fails_when_a_mapped_row_is_removed(folder: Path) -> None:
    replace(folder / "royalmail_codes.csv", "event,EVKNS,,delivered,\n", "")
    answer = check(folder)
    assert answer.returncode == 1
    assert answer.stderr.splitlines() == [
        (
            "lists/royalmail_codes.csv: event/EVKNS (Delivered to Neighbour - Signature [Delivered]):"
            " neither in the table nor waived"
        )
    ]


def test_no_listed_row_of_a_table_can_be_removed(folder: Path) -> None:
    expected = {}
    for name in LISTED:
        columns, mapped = keys(folder / name)
        expected[name] = len(listed_keys(folder / LISTS / name, len(columns)) & mapped)
        rows = (folder / name).read_text("utf-8").splitlines(keepends=True)
        (folder / name).write_text(rows[0], "utf-8")
    missed = {
        row.table: sum(fault.endswith("neither in the table nor waived") for fault in row.faults)
        for row in coverages(folder)
    }
    assert missed == expected


def test_a_code_may_be_waived_with_a_reason_but_not_without(folder: Path) -> None:
    path = folder / LISTS / "royalmail_codes.csv"
    rows = path.read_text("utf-8")
    path.write_text(
        f"{rows}event,EVXXX,Never printed,royal-mail-tracking,2024,only in a draft of the"
        " document\n",
        "utf-8",
    )
    assert check(folder).returncode == 0
    path.write_text(f"{rows}event,EVXXX,Never printed,royal-mail-tracking,2024,\n", "utf-8")
    assert check(folder).returncode == 1


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("event,EVKSP,Delivered,royal-mail-tracking,2024,", "stands twice"),
        ("event,EVX,Delivered,hearsay,2024,draft", "its source 'hearsay' is not in sources.csv"),
        (
            "event,EVX,Delivered,royal-mail-tracking,last week,draft",
            "'last week' is no year, month or day",
        ),
        ("event,EVX,,royal-mail-tracking,2024,draft", "has no meaning"),
        ("event,EVX,Delivered", "1 columns after the key, not 4"),
    ],
)
def test_a_list_is_kept_in_order(folder: Path, row: str, fault: str) -> None:
    path = folder / LISTS / "royalmail_codes.csv"
    path.write_text(path.read_text("utf-8") + row + "\n", "utf-8")
    answer = check(folder)
    assert answer.returncode == 1
    assert fault in answer.stderr


def test_a_waiver_of_a_code_that_is_mapped_is_refused(folder: Path) -> None:
    path = folder / LISTS / "royalmail_codes.csv"
    replace(
        path, "royal-mail-tracking,2024-12-15,\n", "royal-mail-tracking,2024-12-15,never seen\n"
    )
    assert "in the table, and waived" in check(folder).stderr


def test_a_list_without_a_table_and_one_with_other_columns_are_refused(folder: Path) -> None:
    (folder / "royalmail_codes.csv").unlink()
    assert "there is no table events/carriers/royalmail_codes.csv" in check(folder).stderr
    (folder / "royalmail_codes.csv").write_text("code,kind,status,reason\n", "utf-8")
    assert "its columns are" in check(folder).stderr


def test_make_check_runs_it() -> None:
    assert "\t$(BIN)/python -m tests.code_lists\n" in (ROOT / "Makefile").read_text("utf-8")


def listed_keys(path: Path, width: int) -> set[tuple[str, ...]]:
    with path.open(encoding="utf-8", newline="") as lines:
        return {tuple(row[:width]) for row in list(csv.reader(lines))[1:]}
