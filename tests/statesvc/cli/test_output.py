"""Tables: whole in a pipe, as wide as the terminal on one, and nothing is cut off."""

import io
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest

from statesvc.cli.output import cell, shown_time, write_table
from statesvc.cli.presentation import Painted, Presentation, present
from statesvc.telemetry.colour import Colour

ROWS = [
    (
        "NOW",
        "sealer",
        "the oldest entry has waited 3 min to be sealed: feed, stream and proofs stop there",
        "docs/runbook/SealerStopped.md",
    )
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_whole_lines(capsys: pytest.CaptureFixture[str]) -> None:
    write_table(("", "ABOUT", "", "SEE"), ROWS)
    assert ROWS[0][2] in capsys.readouterr().out


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_on_a_terminal_a_table_fits_and_says_everything(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((columns, 24)))
    write_table(("", "ABOUT", "", "SEE"), ROWS)
    lines = terminal.getvalue().splitlines()
    assert max(map(len, lines)) <= columns
    assert set(" ".join(lines).split()) >= set(ROWS[0][2].split())


def test_what_is_copied_stays_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((60, 24)))
    row = (
        "db8c6cf7-b451-4b47-8edf-8fd2b0a9432a",
        "1ZR760R60332160282",
        "2021-10-18 14:02:29-05:00",
        "a long sentence about the parcel",
    )
    write_table(("ID", "NUMBER", "AT", "WHAT"), [row])
    lines = terminal.getvalue().splitlines()
    for word in " ".join(row).split():
        assert any(word in line.split() for line in lines)


@pytest.fixture
def _wide() -> Iterator[None]:
    present(Presentation(wide=True, ages=True))
    yield
    present(Presentation())


def test_colour_is_on_a_terminal_alone_and_moves_no_column(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    rows = [(Painted("NOW", Colour.RED), "sealer"), ("note", "ups")]
    write_table(("", "ABOUT"), rows)
    coloured = terminal.getvalue()
    assert "\x1b[1;31mNOW\x1b[0m   sealer" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    write_table(("", "ABOUT"), rows)
    assert terminal.getvalue().removeprefix(coloured) == "      ABOUT\nNOW   sealer\nnote  ups\n"


def test_further_columns_stand_in_wide_tables_alone(capsys: pytest.CaptureFixture[str]) -> None:
    write_table(("ID", "NAME"), [("1", "one")], wide=("ID",))
    assert capsys.readouterr().out == "NAME\none\n"


@pytest.mark.usefixtures("_wide")
def test_wide_tables_have_all_columns(capsys: pytest.CaptureFixture[str]) -> None:
    write_table(("ID", "NAME"), [("1", "one")], wide=("ID",))
    assert capsys.readouterr().out == "ID  NAME\n1   one\n"


def test_times_are_to_the_second_in_the_zone_that_they_are_stated_in() -> None:
    assert shown_time(datetime(2026, 3, 1, 14, 5, 7, 999, tzinfo=UTC)) == "2026-03-01 14:05:07Z"
    assert (
        shown_time(datetime(2026, 3, 1, 14, 5, tzinfo=timezone(timedelta(hours=-5))))
        == "2026-03-01 14:05:00-05:00"
    )


def test_a_time_inside_an_object_is_a_time_like_any_other() -> None:
    failing = {"since": "2026-03-01T14:05:07.000999+00:00", "failures": 3}
    assert cell(failing) == cell([failing]) == "since 2026-03-01 14:05:07Z, failures 3"


@pytest.mark.usefixtures("_wide")
def test_ages_stand_in_place_of_times() -> None:
    now = datetime.now(UTC)
    assert shown_time(now - timedelta(hours=3, minutes=4, seconds=1)) == "3 h 4 min ago"
    assert shown_time(now + timedelta(minutes=3, seconds=2)) == "in 3 min 1 s"
