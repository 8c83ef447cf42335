"""The command line: a dispatch table of one module per group of commands, imported only when its command is called.

A command module has `configure(parser)` and `run(options) -> int`. Exit codes: 0 done, 1 the check failed, 2 wrong use.
"""

import argparse
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final, Protocol, cast

from events.errors import CarrierPackageError
from statesvc import __version__
from statesvc.background.niceness import lower_priority, run_in_idle_time
from statesvc.cli.command_error import CommandError


class CommandModule(Protocol):
    """What each module of the table offers."""

    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


@dataclass(frozen=True, slots=True)
class ListedCommand:
    """Where a command lives, and one line about it."""

    module: str
    summary: str
    calls_api: bool = False
    """It makes calls of the API, so that it can make them of a service somewhere else."""


COMMANDS: Final[Mapping[str, ListedCommand]] = {
    "up": ListedCommand("statesvc.cli.up", "all roles, supervised; with its own PostgreSQL unless DATABASE_URL is set"),
    "ingress": ListedCommand("statesvc.cli.role", "one process that takes webhooks, and nothing else"),
    "api": ListedCommand("statesvc.cli.role", "one process that answers the API"),
    "worker": ListedCommand("statesvc.cli.role", "one process that turns messages into events and state"),
    "notifier": ListedCommand("statesvc.cli.role", "one process that notifies subscribers"),
    "sealer": ListedCommand("statesvc.cli.role", "one process that seals and signs the log"),
    "init": ListedCommand("statesvc.cli.init", "write a file of all settings, commented out, with defaults and meanings"),
    "migrate": ListedCommand("statesvc.cli.migrate", "bring the database's schema up to date"),
    "completion": ListedCommand("statesvc.cli.completion", "print the completion script for a shell: bash, zsh or fish"),
    "doctor": ListedCommand("statesvc.cli.doctor.doctor", "what is wrong with this installation, in plain words"),
    "status": ListedCommand("statesvc.cli.status", "one screen, worst first: what needs a human, what waits, who pushes", calls_api=True),
    "keys": ListedCommand("statesvc.cli.keys", "make, list and revoke API keys", calls_api=True),
    "carriers": ListedCommand("statesvc.cli.carriers", "carriers, versions, formats, authentication; unknown codes", calls_api=True),
    "normalize": ListedCommand("statesvc.cli.normalize", "print the events of a payload, without a database"),
    "dead-letters": ListedCommand("statesvc.cli.dead_letters", "what waits for a human", calls_api=True),
    "erase": ListedCommand("statesvc.cli.erase", "make a shipment's personal data unreadable, for ever", calls_api=True),
    "expectations": ListedCommand(
        "statesvc.cli.expectation_commands", "after how many hours a shipment counts as stalled, overdue, ...", calls_api=True
    ),
    "evidence": ListedCommand(
        "statesvc.cli.evidence", "a document about a shipment that verifies by itself: JSON with proofs, HTML or PDF", calls_api=True
    ),
    "rebuild": ListedCommand("statesvc.cli.rebuild_command", "rebuild a projection from the log, alongside live traffic"),
    "renormalize": ListedCommand("statesvc.cli.renormalize_command", "read history again, append corrections"),
    "archive": ListedCommand("statesvc.cli.archive", "the archives of bodies and of the log: list, run, verify, log"),
    "backup": ListedCommand("statesvc.cli.backup_command", "what a restore would miss: check"),
    "legal-hold": ListedCommand("statesvc.cli.declared", "numbers whose bodies are exempt from retention", calls_api=True),
    "log": ListedCommand("statesvc.cli.log_fork", "continue the log after a restore that lost published entries: fork"),
    "verify": ListedCommand("statesvc.cli.verify", "check the whole log against its signed heads and one stored elsewhere"),
    "storage": ListedCommand("statesvc.cli.storage", "what fills the disk, what it grows by a day, how long it lasts, what to change"),
    "queue": ListedCommand("statesvc.cli.queue", "what waits: messages by carrier, and notifications", calls_api=True),
    "shipments": ListedCommand("statesvc.cli.shipments", "parcels: find, show, history", calls_api=True),
    "subscriptions": ListedCommand(
        "statesvc.cli.subscriptions", "who is notified, and with what success: list, show, pause, resume, test, replay", calls_api=True
    ),
    "notices": ListedCommand("statesvc.cli.declared", "what the service wants you to know: list, seen", calls_api=True),
    "workers": ListedCommand("statesvc.cli.workers", "the running processes, and when each was last seen", calls_api=True),
    "cell": ListedCommand("statesvc.cli.cell", "the directory of cells: list, status, add, assign, check, proxy, keys, move"),
    "shovel": ListedCommand("statesvc.cli.shovel_command", "move messages from another broker into the inbox, and back"),
    "rollout": ListedCommand(
        "statesvc.cli.rollout", "the share of each carrier that a candidate normalizer reads, and the kill switch", calls_api=True
    ),
}

_READ_FOR_LONG: Final = frozenset({"backup", "evidence", "storage", "verify"})
"""They run in idle time alone: nobody waits for a lock of theirs."""
_COMPUTE_FOR_LONG: Final = _READ_FOR_LONG | {"archive", "rebuild", "renormalize"}
_VALUED: Final = frozenset({"--env-file", "--url", "--key-file", "--profile"})
_NICENESS: Final = 10
"""Theirs, as that of what comes after the ACK."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    if arguments is None:
        _open_standard_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    called = _command_of(given)
    # given arguments, the process is its caller's; and loading a command is half a second of computing by itself
    if arguments is None and called in _COMPUTE_FOR_LONG:
        lower_priority(niceness=_NICENESS)
    if arguments is None and called in _READ_FOR_LONG:
        run_in_idle_time()
    return explained(lambda: _parse_and_run(given, called))


def _parse_and_run(given: Sequence[str], called: str | None) -> int:
    parser, modules = build_parser({called} if called is not None else ())
    options = parser.parse_args(given)
    if called not in modules:
        parser.error("name a command")
    return _run(modules[called], options)


def _open_standard_streams() -> None:
    """One that is closed (`>&-`) goes nowhere: the next file or socket would get its number, and be written to."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            # the lowest number that is free: this one
            os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def build_parser(names: Collection[str]) -> tuple[argparse.ArgumentParser, dict[str, CommandModule]]:
    """The parser of the whole command line, with the arguments of these commands, and the modules that were loaded for them."""
    parser = argparse.ArgumentParser(prog="statesvc", description="Event-sourced shipment state on PostgreSQL.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"statesvc {__version__}")
    parser.add_argument("--env-file", metavar="FILE", help="a file of settings, NAME=value a line (`statesvc init` writes one)")
    parser.add_argument("--url", metavar="URL", dest="service_url", help="the service to call (or STATESVC_URL); else that of this machine")
    parser.add_argument("--key-file", metavar="FILE", help="the file with the key for it (or the key itself in STATESVC_API_KEY)")
    parser.add_argument("--profile", metavar="NAME", help="both from ~/.config/statesvc/profiles.toml (or STATESVC_PROFILE)")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    modules: dict[str, CommandModule] = {}
    for name, command in COMMANDS.items():
        subparser = commands.add_parser(name, help=command.summary, description=command.summary)
        if name in names:
            modules[name] = cast("CommandModule", import_module(command.module))
            modules[name].configure(subparser)
    return parser, modules


def _command_of(given: Sequence[str]) -> str | None:
    """The first word that is neither an option of ours nor its value."""
    words = iter(given)
    for word in words:
        if word in _VALUED:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return None


def _read_env_file(given: str | None) -> None:
    named = given or os.environ.get("STATESVC_ENV_FILE")
    if named:
        from statesvc.settings.env_file import add_env_file  # noqa: PLC0415 - loads the settings, which --help does not need

        add_env_file(Path(named), os.environ)


def _run(module: CommandModule, options: argparse.Namespace) -> int:
    _read_env_file(options.env_file)
    if not COMMANDS[options.command].calls_api and (options.service_url or options.key_file or options.profile):
        raise CommandError(f"{options.command} works on the service's own machine: it calls no service by --url or --profile", exit_code=2)
    return module.run(options)


def explained(run: Callable[[], int]) -> int:
    """Runs it and gives its exit code; what it raises is said in words, where there are any for it."""
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
    except CarrierPackageError as error:
        return _told(CommandError(str(error), exit_code=2))
    except Exception as error:
        from statesvc.cli.explanation import explain  # noqa: PLC0415 - loads the database driver, which --help and most runs do not need

        words = explain(error)
        if words is None:
            raise
        return _told(words)


def _told(error: CommandError) -> int:
    sys.stderr.write(f"statesvc: {error}\n")
    return error.exit_code
