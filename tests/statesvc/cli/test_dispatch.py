import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from statesvc.cli import build_parser, main
from statesvc.cli.command_parser import CommandParser
from statesvc.cli.command_table import actions, command_groups, commands
from statesvc.cli.removed_commands import REMOVED
from statesvc.runbook import pages
from tests.world.shell import Shell


@pytest.mark.usefixtures("own_processes")
def test_help_loads_neither_the_database_driver_nor_the_settings() -> None:
    code = (
        "import sys, contextlib, io\nfrom statesvc.cli import main\nwith"
        " contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):"
        " main(['--help'])\nprint(sorted({'psycopg', 'pydantic', 'aiohttp', 'lxml', 'structlog'} &"
        " set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize(
    ("module", "niceness", "policy"),
    [
        ("statesvc.addons.verify.verify_command", 10, os.SCHED_IDLE),
        ("statesvc.cli.rebuild_command", 10, os.SCHED_OTHER),
        ("statesvc.cli.status", 0, os.SCHED_OTHER),
    ],
)
def test_what_computes_for_long_lets_others_go_first(
    module: str, niceness: int, policy: int
) -> None:
    name = module.rpartition(".")[2].removesuffix("_command")
    arguments = ["rebuild", "shipment"] if name == "rebuild" else [name]
    code = (
        f"import os, sys, {module} as command\nfrom statesvc.cli import main\ncommand.run = lambda"
        " _: print(os.getpriority(os.PRIO_PROCESS, 0), os.getsid(0), os.sched_getscheduler(0)) or"
        f" 0\nsys.argv[1:] = {arguments}\nmain()"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    base = os.getpriority(os.PRIO_PROCESS, 0)
    expected = [str(max(base, niceness)), str(os.getsid(0)), str(policy)]
    assert ended.stdout.split() == expected, "in the session of its terminal, whose Ctrl-C it gets"


def test_a_broken_setting_is_told_by_its_name_and_not_by_its_value(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATESVC_DATABASE_CONNECTIONS", "plenty")
    assert main(["carriers"]) == 2
    told = capsys.readouterr().err
    assert "STATESVC_DATABASE_CONNECTIONS: " in told
    assert "plenty" not in told


def test_alone_it_lists_all_commands_in_groups_on_a_terminal_of_80_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert [line for line in lines if line in command_groups()] == [
        "Start",
        "Look",
        "Repair",
        "Evidence",
        "Roles",
        "Admin",
    ]
    assert {line.split()[0] for line in lines if line.startswith("  ")} >= set(commands())


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [
        ("shipmnts", "did you mean `statesvc shipments`?"),
        ("carriers quotta ups", "did you mean `statesvc carriers quota`?"),
        ("carriers hold ups", "did you mean `statesvc rollout hold`?"),
        ("hold ups", "did you mean `statesvc rollout hold`?"),
        ("frobnicate", "`statesvc` lists them"),
        ("keys frobnicate", "`statesvc keys --help` lists them"),
    ],
)
def test_an_unknown_command_is_told_what_was_probably_meant(
    typed: str, suggested: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(typed.split())
    assert ended.value.code == 2
    assert suggested in capsys.readouterr().err


def test_options_of_all_commands_stand_before_and_after_the_command() -> None:
    parser, _ = build_parser({"queue"})
    before, after = (
        ("--url", "http://h", "-o", "json", "--ages", "queue"),
        ("queue", "--url", "http://h", "-o", "json", "--ages"),
    )
    assert parser.parse_args(before) == parser.parse_args(after)
    assert parser.parse_args(after).service_url == "http://h"


PRINTS_NO_ANSWER: Final = frozenset(
    {
        *("up", "ingress", "api", "worker", "notifier", "sealer"),  # run until they are stopped
        *("init", "carriers draft", "completion", "runbook"),  # make or print files, a page
        "psql",  # another program
        "mcp",  # speaks a protocol on the standard streams
    }
)


def _ends(parser: CommandParser) -> Iterator[CommandParser]:
    """Yield the parsers with which a command line can end."""
    if parser.actions is None or not parser.actions.required:
        yield parser
    if parser.actions is not None:
        for action in parser.actions.choices.values():
            yield from _ends(action)


def test_each_command_that_prints_an_answer_prints_it_for_scripts_too() -> None:
    parser, _ = build_parser({*commands(), *actions()})
    ends = [end for name in commands() for end in _ends(parser.actions.choices[name])]
    without = {
        end.prog.removeprefix("statesvc ") for end in ends if "--json" not in end.format_help()
    }
    assert without == PRINTS_NO_ANSWER


def test_a_command_without_a_document_refuses_to_print_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["completion", "bash", "-o", "json"]) == 2
    assert "has no JSON" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (
            "shipments show",
            "required: carrier, tracking_number; see `statesvc shipments show --help`",
        ),
        ("shipments show ups", "required: tracking_number; see"),
        ("shipments find --reference", "argument --reference: expected one argument; see"),
        ("shipments list --limit many", "argument --limit: invalid int value: 'many'; see"),
        (
            "shipments list --status delivred",
            "argument --status: invalid choice: 'delivred' (choose from",
        ),
        ("shipments list --stauts delivered", "unknown option --stauts; did you mean --status?"),
        # --wait was removed, and is only accepted
        ("dead-letters replay --limt 3", "unknown option --limt; did you mean --limit?"),
        ("dead-letters replay --porfile", "unknown option --porfile; did you mean --profile"),
        ("status ups", "unexpected argument 'ups'; see `statesvc status --help`"),
        ("status --frobnicate", "unknown option --frobnicate; see `statesvc status --help`"),
        ("--url http://h", "name a command; see `statesvc --help`"),
        ("--frobnicate", "unknown option --frobnicate; see `statesvc --help`"),
    ],
)
def test_wrong_use_is_one_sentence_that_says_what_to_do(
    typed: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(typed.split())
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("statesvc")
    assert told in line


def test_no_help_is_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    parser, _ = build_parser({*commands(), *actions()})
    lines = [
        line
        for name in commands()
        for end in _ends(parser.actions.choices[name])
        for line in end.format_help().splitlines()
    ]
    assert [line for line in lines if len(line) > 80] == []


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
