"""Errors of the libraries and the database in words for a person at a terminal."""

import errno
import re
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Final

import psycopg
from pydantic import ValidationError

from events.crypto.sealing import UnknownMasterKeyError
from statesvc.cli.command_error import CommandError
from statesvc.database.postgres_programs import NoDataError, UnusableFolderError
from statesvc.database.sql_errors import ConnectionCause, Failure, connection_cause, failure
from statesvc.settings.carrier_settings import SettingError
from statesvc.settings.renamed_variables import AmbiguousVariableError
from statesvc.settings.service_settings import SECTIONS
from statesvc.settings.variable_names import PREFIX, variable_of

_ENDED: Final = (
    "the database, or a process of this command, ended in the middle of it: run it again"
)
_WAY: Final = re.compile(r"^connection failed: (connection to server .*? failed: )?(FATAL: +)?")


def explain(error: Exception) -> CommandError | None:
    """Return the text to print, with the exit code.

    None: a defect, for which the traceback helps more.
    """
    explained: CommandError | None = None
    match error:
        case CommandError():
            explained = error
        case ValidationError():
            explained = CommandError("; ".join(_settings(error)), exit_code=2)
        case SettingError() | AmbiguousVariableError() | NoDataError() | UnusableFolderError():
            explained = CommandError(str(error), exit_code=2)
        case psycopg.Error():
            explained = _of_database(error)
        case BrokenProcessPool():
            explained = CommandError(_ENDED)
        case ExceptionGroup(exceptions=several):
            # of what failed together, the first that can be explained
            explained = next(filter(None, map(explain, several)), None)
        case UnknownMasterKeyError():
            explained = CommandError(str(error))
        case RuntimeError() | ValueError() | OSError() if type(error).__module__.startswith(
            "statesvc."
        ):
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
    if isinstance(error, PermissionError) and error.filename is not None:
        return CommandError(
            f"{error.filename}: permission denied; run it as the user that the service runs as",
            exit_code=2,
        )
    try:
        Path.cwd()
    except FileNotFoundError:
        return CommandError("the working folder was removed: change to another one", exit_code=2)
    return None


def _of_database(error: psycopg.Error) -> CommandError | None:
    match error:
        case (
            psycopg.errors.UndefinedTable()
            | psycopg.errors.InvalidSchemaName()
            | psycopg.errors.UndefinedFunction()
        ):
            return CommandError(
                "the database has no schema, or an older one: run `statesvc migrate`"
            )
        case psycopg.InterfaceError():
            return CommandError(_ENDED)
        case _ if failure(error) in {Failure.UNAVAILABLE, Failure.FORBIDDEN}:
            return CommandError(
                f"the database refused or does not answer: {database_message(error)}{_check(error)}"
            )
        case _:
            return None


def database_message(error: Exception) -> str:
    """Return the message of the server or the connection, without the server's address."""
    return _WAY.sub("", str(error).strip().split("\n", 1)[0])


def _check(error: psycopg.Error) -> str:
    """Return the first thing to check, as the end of a sentence."""
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return "; STATESVC_OWNER_URL must name the role that owns the tables"
    match connection_cause(error):
        case ConnectionCause.AUTH | ConnectionCause.NO_DATABASE:
            return "; check user, password and database in DATABASE_URL"
        case ConnectionCause.DNS | ConnectionCause.REFUSED:
            return "; check the address in DATABASE_URL, and that PostgreSQL runs there"
        case _:
            return ""
