from pathlib import Path
from typing import Final

import pytest

from statesvc.cli import main
from statesvc.cli.removed_commands import REMOVED

PROMISES: Final = Path(__file__).parents[3] / "docs" / "promises.md"


@pytest.mark.parametrize("removed", REMOVED)
def test_a_removed_command_is_refused_with_its_replacement(
    removed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(removed.split()) == 2
    assert capsys.readouterr().err == (
        f"statesvc: `statesvc {removed}` was removed: {REMOVED[removed]}\n"
    )
    assert f"`statesvc {removed}`" in PROMISES.read_text("utf-8")
