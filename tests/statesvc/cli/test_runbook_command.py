"""The runbook at a terminal."""

import pytest

from statesvc.cli import main
from statesvc.runbook import pages
from tests.world.shell import Shell


async def test_alone_it_lists_the_pages_with_their_titles(shell: Shell) -> None:
    listed = await shell("runbook")
    assert "RoleDown           A role does not run\n" in listed
    assert {line.split()[0] for line in listed.splitlines()[1:]} == set(pages()) - {"README"}


@pytest.mark.parametrize("name", ["RoleDown", "roledown", "RoleDown.md"])
async def test_a_page_is_printed_by_its_name(name: str, shell: Shell) -> None:
    assert (await shell("runbook", name)).startswith("# A role does not run\n")


def test_a_page_that_there_is_not_is_told_what_was_meant(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["runbook", "RoleDwn"]) == 2
    assert "did you mean `statesvc runbook RoleDown`?" in capsys.readouterr().err
