"""Shells complete what the parser takes: asked of the shells themselves."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from statesvc.cli.command_table import commands
from tests.world.programs import required
from tests.world.shell import Shell

ASKS: Final[Mapping[str, str]] = {
    "bash": (
        "source {script}; COMP_WORDS=({line} ''); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1));"
        " _shtab_statesvc; printf '%s\\n' ${{COMPREPLY[@]}}"
    ),
    "fish": "source {script}; complete -C '{line} '",
}


def _completed(shell: str, script: Path, line: str) -> set[str]:
    command = {"bash": ["bash", "--norc", "-c"], "fish": ["fish", "--no-config", "-c"]}[shell]
    asked = subprocess.run(
        [*command, ASKS[shell].format(script=script, line=line)],
        capture_output=True,
        text=True,
        check=True,
    )
    return {each.partition("\t")[0] for each in asked.stdout.splitlines()}


@pytest.mark.parametrize("name", sorted(ASKS))
@pytest.mark.usefixtures("own_processes")
async def test_commands_and_their_words_are_completed(
    name: str, shell: Shell, tmp_path: Path
) -> None:
    required(name, name)
    script = tmp_path / "script"
    script.write_text(await shell("completion", name))
    assert set(commands()) <= _completed(name, script, "statesvc")
    assert {"list", "pause", "rotate-secret"} <= _completed(name, script, "statesvc subscriptions")
    assert {"message", "code", "notification"} <= _completed(
        name, script, "statesvc dead-letters list --kind"
    )
