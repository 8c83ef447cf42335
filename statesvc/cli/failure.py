"""What a person at a terminal reads when a command fails for a reason that is not a defect."""

import errno
from dataclasses import dataclass

import psycopg
from pydantic import ValidationError

from statesvc.cli.command_error import CommandError
from statesvc.database.sql_errors import Failure, failure


@dataclass(frozen=True, slots=True)
class Told:
    """What to print, and the exit code."""

    text: str
    exit_code: int


def explain(error: Exception) -> Told | None:
    """None: a defect, whose traceback helps more than words."""
    told: Told | None = None
    match error:
        case CommandError():
            told = Told(str(error), error.exit_code)
        case ValidationError():
            told = Told("; ".join(_settings(error)), 2)
        case psycopg.errors.UndefinedTable() | psycopg.errors.InvalidSchemaName() | psycopg.errors.UndefinedFunction():
            told = Told("the database has no schema, or an older one: run `statesvc migrate`", 1)
        case psycopg.Error() if failure(error) in {Failure.UNAVAILABLE, Failure.FORBIDDEN}:
            told = Told(f"the database refused or does not answer: {_first_line(error)}", 1)
        case OSError(errno=errno.EADDRINUSE):
            told = Told("the port is in use: choose another one with --port", 1)
        case RuntimeError() | ValueError() if type(error).__module__.startswith("statesvc."):
            told = Told(str(error), 1)
        case _:
            pass
    return told


def _settings(error: ValidationError) -> list[str]:
    return [f"setting {'.'.join(map(str, flaw['loc'])) or error.title}: {flaw['msg']}" for flaw in error.errors(include_input=False)]


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]
