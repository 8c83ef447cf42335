"""Tables: whole in a pipe, as wide as the terminal on one, and nothing is cut off."""

import io
import os

import pytest

from statesvc.cli.output import fitting, write_table

ROWS = [
    ("NOW", "sealer", "the oldest entry has waited 3 min to be sealed: feed, stream and proofs stop there", "docs/runbook/SealerStopped.md")
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_whole_lines(capsys: pytest.CaptureFixture[str]) -> None:
    write_table(("", "ABOUT", "", "SEE"), ROWS)
    assert ROWS[0][2] in capsys.readouterr().out


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_on_a_terminal_a_table_fits_and_says_everything(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((columns, 24)))
    write_table(("", "ABOUT", "", "SEE"), ROWS)
    lines = terminal.getvalue().splitlines()
    assert max(map(len, lines)) <= columns
    assert set(" ".join(lines).split()) >= set(ROWS[0][2].split())


def test_narrow_columns_stay_as_they_are() -> None:
    assert fitting([4, 8, 90, 30], 100) == [4, 8, 52, 30]
    assert fitting([4, 8], 100) == [4, 8]
    assert fitting([20, 20], 10) == [12, 12]
