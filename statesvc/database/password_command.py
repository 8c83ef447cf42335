"""Passwords from a program: tokens of a provider's identity service, or a rotated secret.

The program runs before a connection without a password in its address; connections of a process
share its output for a few seconds. It runs again when the server refused the password.
"""

import asyncio
import shlex
import subprocess
import time
from collections.abc import Mapping
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

# Tokens of RDS last 15 minutes, those of Cloud SQL and Azure an hour.
SHARED_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 10.0


class PasswordCommandError(psycopg.OperationalError):
    """The program printed no password; the message gives the reason without its output."""


class PasswordCommand:
    """One program, for every address.

    `{host}`, `{port}`, `{user}` and `{dbname}` in its arguments are those of the address.
    """

    def __init__(self, command: str) -> None:
        self.command = command
        self._words = shlex.split(command)
        self._printed: dict[tuple[str, ...], tuple[float, str]] = {}
        self._asking = asyncio.Lock()

    async def password(self, dsn: str) -> str | None:
        """Return the password; None: the address has a source of its own.

        Raises PasswordCommandError.
        """
        words = self._words_for(dsn)
        if words is None:
            return None
        async with self._asking:
            return self._recent(words) or self._keep(
                words, await asyncio.to_thread(_printed, words)
            )

    def password_now(self, dsn: str) -> str | None:
        """Return the password without an event loop."""
        words = self._words_for(dsn)
        return None if words is None else self._recent(words) or self._keep(words, _printed(words))

    def forget(self) -> None:
        """Forget a refused password."""
        self._printed.clear()

    def _words_for(self, dsn: str) -> tuple[str, ...] | None:
        given = conninfo_to_dict(dsn)
        if given.get("password") or given.get("passfile"):
            return None
        values = {name: str(given.get(name) or "") for name in ("host", "port", "user", "dbname")}
        values["port"] = values["port"] or "5432"
        return tuple(_filled(word, values) for word in self._words)

    def _recent(self, words: tuple[str, ...]) -> str | None:
        at, printed = self._printed.get(words, (float("-inf"), ""))
        return printed if time.monotonic() - at < SHARED_SECONDS else None

    def _keep(self, words: tuple[str, ...], printed: str) -> str:
        self._printed[words] = (time.monotonic(), printed)
        return printed


class _Chosen:
    """The command of this process; the composition root chooses it before anything connects."""

    command: PasswordCommand | None = None


def choose_password_command(command: str | None) -> None:
    """Choose the command for all connections of this process; spawned processes must choose again.

    None: passwords are in the addresses.
    """
    _Chosen.command = None if command is None else PasswordCommand(command)


def password_command() -> PasswordCommand | None:
    return _Chosen.command


def chosen_password_command() -> str | None:
    """Return the command line that was chosen, for a process that is spawned."""
    return None if _Chosen.command is None else _Chosen.command.command


def _filled(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", value)
    return word


def _printed(words: tuple[str, ...]) -> str:
    try:
        # as the operator set it
        ended: subprocess.CompletedProcess[Any] = subprocess.run(  # noqa: S603
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            timeout=ANSWER_SECONDS,
        )
    except FileNotFoundError:
        raise PasswordCommandError(
            f"STATESVC_DATABASE_PASSWORD_COMMAND: there is no program {words[0]}"
        ) from None
    except subprocess.CalledProcessError as error:
        raise PasswordCommandError(
            f"STATESVC_DATABASE_PASSWORD_COMMAND ended with {error.returncode}"
        ) from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PasswordCommandError(
            f"STATESVC_DATABASE_PASSWORD_COMMAND: {type(error).__name__}"
        ) from None
    password = str(ended.stdout).strip()
    if not password:
        raise PasswordCommandError("STATESVC_DATABASE_PASSWORD_COMMAND printed nothing")
    return password
