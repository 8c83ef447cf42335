"""The command line: a module per group of commands, imported only when its command is called.

A command module has `configure(parser)` and `run(options) -> int`. Exit codes: 0 done, 1 the check
failed, 2 wrong use.
"""

import argparse
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol, cast

from events.errors import CarrierPackageError
from statesvc.background.niceness import lower_priority, run_in_idle_time
from statesvc.cli.command_error import CommandError
from statesvc.cli.command_parser import VALUED, CommandParser, TopParser
from statesvc.cli.command_table import DEFAULT_ACTIONS, actions, commands, left_out_by
from statesvc.cli.presentation import Presentation, present
from statesvc.cli.removed_commands import refusal
from statesvc.cli.service_profile import service_of
from statesvc.seams import ListedCommand, UnknownAddOnError, sentence
from statesvc.settings.renamed_variables import RENAMES


class CommandModule(Protocol):
    """Interface of each module of the table."""

    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


# Commands that run in idle time alone: they take no locks that others wait for.
_READ_FOR_LONG: Final = frozenset({"evidence", "verify"})
_COMPUTE_FOR_LONG: Final = _READ_FOR_LONG | {"archive", "rebuild", "renormalize"}
# Niceness of these, as of the work after the ACK.
_NICENESS: Final = 10


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    if arguments is None:
        _open_standard_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    words = _words(given)
    called = words[0] if words else None
    # given arguments, the process is its caller's; and loading a command is half a second of
    # computing by itself
    if arguments is None and called in _COMPUTE_FOR_LONG:
        lower_priority(niceness=_NICENESS)
    if arguments is None and called in _READ_FOR_LONG:
        run_in_idle_time()
    return explained(lambda: _parse_and_run(given, words))


def _parse_and_run(given: Sequence[str], words: Sequence[str]) -> int:
    if removed := refusal(words, given):
        raise CommandError(removed, exit_code=2)
    given, words = _with_default_action(given, words)
    called, action = (*words, None, None)[:2]
    _refuse_left_out(called, action)
    parser, modules = build_parser({called or "", f"{called} {action}"})
    if not given:
        parser.print_help()
        return 0
    if called in modules and given[-1] == called:
        group: CommandParser = parser.actions.choices[called]
        if group.needs_action:
            group.print_help()
            return 0
    options, unknown = parser.parse_known_args(given)
    if unknown:
        parser.refuse(options, unknown)
    if called not in modules:
        parser.error("name a command")
    return _run(modules, options)


def _with_default_action(
    given: Sequence[str], words: Sequence[str]
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the command line with the action that a command does by its name alone."""
    if len(words) != 1 or words[0] not in DEFAULT_ACTIONS or {"-h", "--help"} & {*given}:
        return given, words
    action, behind = DEFAULT_ACTIONS[words[0]], given.index(words[0]) + 1
    return [*given[:behind], action, *given[behind:]], [*words, action]


def _refuse_left_out(command: str | None, action: str | None) -> None:
    for name in (command, f"{command} {action}"):
        if name is not None and (addon := left_out_by(name)) is not None:
            raise CommandError(sentence(addon, f"the command {name}"), exit_code=2)


def _open_standard_streams() -> None:
    """Open a closed stream (`>&-`) to nowhere.

    The next file or socket would get its number, and the stream's output.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            # the lowest number that is free: this one
            os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def build_parser(names: Collection[str]) -> tuple[TopParser, dict[str, CommandModule]]:
    """Return the parser of the command line, and the loaded modules.

    `names`: the commands, and the commands with an action, whose arguments it takes.
    """
    parser = TopParser()
    subparsers = parser.add_subparsers(
        dest="command", metavar="COMMAND", parser_class=CommandParser
    )
    modules: dict[str, CommandModule] = {}

    # argparse has no public name for it
    def add(to: Any, name: str, row: ListedCommand) -> CommandParser:  # noqa: ANN401
        added: CommandParser = to.add_parser(name.rsplit(maxsplit=1)[-1], help=row.summary)
        if name in names:
            modules[name] = cast("CommandModule", import_module(row.module))
            added.take_options_anywhere()
            modules[name].configure(added)
        return added

    added = {name: add(subparsers, name, row) for name, row in commands().items()}
    for name, row in actions().items():
        command = name.split()[0]
        if command in modules:
            add(added[command].actions, name, row)
    return parser, modules


def _words(given: Sequence[str]) -> list[str]:
    """Return the words that are neither options nor the values of ours."""
    rest, words = iter(given), list[str]()
    for word in rest:
        if word in VALUED:
            next(rest, None)
        elif not word.startswith("-"):
            words.append(word)
    return words


def _read_env_file(given: str | None) -> None:
    named = given or os.environ.get("STATESVC_ENV_FILE")
    if named:
        # loads the settings, which --help does not need
        from statesvc.settings.env_file import add_env_file  # noqa: PLC0415

        add_env_file(Path(named), os.environ)
    for warning in RENAMES.adopt(os.environ):
        sys.stderr.write(f"statesvc: {warning}\n")


def _run(modules: Mapping[str, CommandModule], options: argparse.Namespace) -> int:
    _read_env_file(options.env_file)
    command, action = options.command, getattr(options, "action", None)
    # that file may have said which add-ons there are
    _refuse_left_out(command, action)
    is_action = f"{command} {action}" in modules
    name = f"{command} {action}" if is_action else command
    row = actions()[name] if is_action else commands()[name]
    if not row.calls_api and (
        options.service_url
        or options.key_file
        or options.profile
        # the environment names a service for the other actions: it is refused like an option
        or (is_action and service_of(options) is not None)
    ):
        raise CommandError(
            f"{name} works on the service's own machine: it calls no service by --url or --profile",
            exit_code=2,
        )
    if options.output == "json":
        if not hasattr(options, "json"):
            raise CommandError(f"{name} has no JSON to print", exit_code=2)
        options.json = True
    present(Presentation(wide=options.output == "wide", ages=options.ages))
    return modules[name].run(options)


def explained(run: Callable[[], int]) -> int:
    """Run it and return its exit code; print a sentence for each known error."""
    try:
        return run()
    except KeyboardInterrupt:
        sys.stderr.write("statesvc: interrupted\n")
        return 1
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except CommandError as error:
        return _told(error)
    except (CarrierPackageError, UnknownAddOnError) as error:
        return _told(CommandError(str(error), exit_code=2))
    except Exception as error:
        # loads the database driver, which --help and most runs do not need
        from statesvc.cli.explanation import explain  # noqa: PLC0415

        words = explain(error)
        if words is None:
            raise
        return _told(words)


def _told(error: CommandError) -> int:
    sys.stderr.write(f"statesvc: {error}\n")
    return error.exit_code
