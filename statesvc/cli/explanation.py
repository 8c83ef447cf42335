"""Errors of the libraries and the database in words for a person at a terminal."""

import errno
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import psycopg
from pydantic import ValidationError

from statesvc.cli.command_error import CommandError
from statesvc.database.embedded_error import NoDataError
from statesvc.database.sql_errors import Failure, failure
from statesvc.settings.carrier_settings import SettingError
from statesvc.settings.renamed_variables import AmbiguousVariableError
from statesvc.settings.service_settings import SECTIONS
from statesvc.settings.variable_names import PREFIX, variable_of


def explain(error: Exception) -> CommandError | None:
    """Return what to print, and the exit code. None: a defect, whose traceback helps more than words."""
    explained: CommandError | None = None
    match error:
        case CommandError():
            explained = error
        case ValidationError():
            explained = CommandError("; ".join(_settings(error)), exit_code=2)
        case SettingError() | AmbiguousVariableError() | NoDataError():
            explained = CommandError(str(error), exit_code=2)
        case psycopg.errors.UndefinedTable() | psycopg.errors.InvalidSchemaName() | psycopg.errors.UndefinedFunction():
            explained = CommandError("the database has no schema, or an older one: run `statesvc migrate`")
        case psycopg.Error() if failure(error) in {Failure.UNAVAILABLE, Failure.FORBIDDEN}:
            explained = CommandError(f"the database refused or does not answer: {_first_line(error)}")
        case psycopg.InterfaceError() | BrokenProcessPool():
            explained = CommandError("the database, or a process of this command, ended in the middle of it: run it again")
        case ExceptionGroup(exceptions=several):
            # of what failed together, the first that can be explained
            explained = next(filter(None, map(explain, several)), None)
        case RuntimeError() | ValueError() | OSError() if type(error).__module__.startswith("statesvc."):
            explained = CommandError(str(error))
        case OSError():
            explained = _of_system(error)
        case _:
            pass
    return explained


def _settings(error: ValidationError) -> list[str]:
    """Return a sentence for each flaw, which names the variable."""
    said = []
    for flaw in error.errors(include_input=False):
        words = flaw["msg"].removeprefix("Value error, ")
        said.append(words if PREFIX in words else f"{_variable(error.title, flaw['loc'])}: {words}")
    return said


def _variable(title: str, place: tuple[int | str, ...]) -> str:
    section = next((each for each in SECTIONS if each.__name__ == title), None)
    name = str(place[0]) if place else title
    if section is None or name not in section.model_fields:
        return f"setting {name}"
    return variable_of(section, name, section.model_fields[name])


def _of_system(error: OSError) -> CommandError | None:
    if error.errno == errno.EADDRINUSE:
        return CommandError("the port is in use: choose another one with --port")
    try:
        Path.cwd()
    except FileNotFoundError:
        return CommandError("the working folder was removed: change to another one", exit_code=2)
    return None


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]
