"""Meaning of database errors for callers: a table from SQLSTATE to the next step; and causes of
failed connections, in one word for logs.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, LiteralString

import psycopg
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests


class Failure(StrEnum):
    """Stable words, used in metrics too."""

    UNAVAILABLE = "unavailable"
    """The server is not reachable, full or going away.

    A statement under way may or may not have been committed.
    """
    TRANSIENT = "transient"
    """Rolled back for the sake of others (deadlock, timeout): the same transaction
    may succeed next time.
    """
    DUPLICATE = "duplicate"
    IMMUTABLE = "immutable"
    """A statement tried to change the log."""
    NOT_ARCHIVED = "not_archived"
    """Bodies without a verified archive were to be dropped."""
    REFUSED_DATA = "refused_data"
    """This row can't be stored, today or tomorrow; others can."""
    FORBIDDEN = "forbidden"
    """The role lacks a privilege, or may not log in: a matter of installation."""
    MISROUTED = "misrouted"
    """A prepared statement is not on the connection that should execute it: a pooler in
    between does not support it.
    """
    NO_PARTITION = "no_partition"
    """No partition takes rows of this time: none was made, or the database's clock is wrong.

    The data is right.
    """
    DEFECT = "defect"
    """A statement that can't work: a bug, or a schema of another version."""


class ServerSilentError(psycopg.OperationalError):
    """No answer in time, and the connection was closed; the transaction may have been committed."""

    def __init__(self) -> None:
        super().__init__("the database stopped answering: the connection was closed")


# By SQLSTATE, or by its class (the first two characters) where the SQLSTATE itself is not listed.
FAILURES: Final[Mapping[str, Failure]] = MappingProxyType(
    {
        "SS001": Failure.IMMUTABLE,
        "SS003": Failure.NOT_ARCHIVED,
        "SS005": Failure.DUPLICATE,  # another transaction was first
        "SS006": Failure.DEFECT,  # the sequence of batch ids is behind
        "23505": Failure.DUPLICATE,
        "42501": Failure.FORBIDDEN,
        "26000": Failure.MISROUTED,  # the prepared statement does not exist
        "42P05": Failure.MISROUTED,  # it exists already, made by another client
        "25P03": Failure.UNAVAILABLE,  # idle_in_transaction_session_timeout: the server hung up
        "25P04": Failure.TRANSIENT,  # transaction_timeout
        "55P03": Failure.TRANSIENT,  # lock_timeout
        "57014": Failure.TRANSIENT,  # statement_timeout
        "08": Failure.UNAVAILABLE,  # connection lost or not made
        "22": Failure.REFUSED_DATA,
        "23": Failure.REFUSED_DATA,
        "25006": Failure.UNAVAILABLE,  # read-only: a standby, the primary is elsewhere
        "28": Failure.FORBIDDEN,
        "3D": Failure.FORBIDDEN,  # no such database
        "40": Failure.TRANSIENT,  # serialisation failure, deadlock
        "53": Failure.UNAVAILABLE,  # out of disk, memory or connections
        "54": Failure.REFUSED_DATA,  # a program limit, such as the size of an index entry
        "55": Failure.TRANSIENT,
        "57": Failure.UNAVAILABLE,  # shutting down, starting up, crashed
        "58": Failure.UNAVAILABLE,  # input/output error
    }
)

# Errors of the server, not of a statement: read-only, stopping, crashed, starting, database gone.
# Every other connection will meet the same, even when another server has taken its place.
OF_SERVER: Final = frozenset({"25006", "57P01", "57P02", "57P03", "57P04"})

_CARRY: Final[LiteralString] = (
    "DATABASE_URL leads through a pooler in transaction mode that does not carry prepared"
    " statements: set STATESVC_PREPARED_STATEMENTS=false, or use PgBouncer 1.22 or later with"
    " max_prepared_statements above 0"
)
_LOGIN: Final = re.compile(r"connection failed: .* failed: (?:FATAL: +)?(?P<why>.+)")
_QUOTED: Final = re.compile(r"\"[^\"]*\"|'[^']*'")
_NO_PARTITION: Final = (
    "no partition takes rows of the database's present time: is its clock right? "
    "If it is, a worker or `statesvc migrate` makes partitions"
)
# Remedies by SQLSTATE, where the error's own name misleads. Logged next to the error.
ADVICE: Final[Mapping[str, LiteralString]] = MappingProxyType(
    {
        "SS006": (
            "the next batch id exists already: `statesvc doctor` names the statement that sets the"
            " sequence"
        ),
        "26000": _CARRY,
        "42P05": _CARRY,
        "0A000": (
            "most likely a migration changed what a prepared statement answers: connections are"
            " replaced within the hour, a restart of this process (and RECONNECT on the console of"
            " a PgBouncer) does it at once"
        ),
    }
)


def failure(error: psycopg.Error | OSError | TimeoutError) -> Failure:
    """Classify the error without reading its text."""
    match error:
        case PoolTimeout() | PoolClosed() | TooManyRequests():
            return Failure.UNAVAILABLE
        case psycopg.errors.CheckViolation() if error.diag.constraint_name is None:
            return Failure.NO_PARTITION
        case psycopg.Error(sqlstate=str(code)):
            return FAILURES.get(code) or FAILURES.get(code[:2], Failure.DEFECT)
        case psycopg.DataError():
            return Failure.REFUSED_DATA  # refused by the client library before it was sent
        case psycopg.OperationalError() | OSError():
            return Failure.UNAVAILABLE
        case _:
            return Failure.DEFECT


def is_of_server(error: BaseException) -> bool:
    """Return whether it is about the server, so that none of the connections to it
    should be used any more.
    """
    return isinstance(error, ServerSilentError) or (
        isinstance(error, psycopg.Error) and error.sqlstate in OF_SERVER
    )


def advice(error: BaseException) -> str | None:
    """Return the remedy where the error's name misleads; for a failed login the cause."""
    if not isinstance(error, psycopg.Error):
        return None
    if isinstance(error, psycopg.errors.CheckViolation) and error.diag.constraint_name is None:
        return _NO_PARTITION
    if error.sqlstate is None and isinstance(error, psycopg.OperationalError):
        return login_fault(error)
    return ADVICE.get(error.sqlstate or "")


def login_fault(error: psycopg.OperationalError) -> str | None:
    """Return why there is no connection, in libpq's words, without names and addresses."""
    line = str(error).split("\n", 1)[0]
    said = _LOGIN.fullmatch(line)
    return None if said is None else _QUOTED.sub("...", said["why"])


class ConnectionCause(StrEnum):
    """Cause of a failed connection, in one word for logs."""

    AUTH = "auth"
    """The server refused the password, the user, or the address."""
    TLS = "tls"
    """Encryption: a certificate that does not fit, or only one side wants it."""
    LIMIT = "limit"
    """The role, its database or the server has all the connections that it may have."""
    NO_DATABASE = "no_database"
    READ_ONLY = "read_only"
    """It answered, and takes no writes: a standby."""
    STARTING = "starting"
    DNS = "dns"
    TIMEOUT = "timeout"
    REFUSED = "refused"
    LOST = "lost"


_CAUSES_BY_CODE: Final[Mapping[str, ConnectionCause]] = MappingProxyType(
    {
        "25006": ConnectionCause.READ_ONLY,
        "28": ConnectionCause.AUTH,
        "3D000": ConnectionCause.NO_DATABASE,
        "53300": ConnectionCause.LIMIT,
        "57P03": ConnectionCause.STARTING,
        "57P": ConnectionCause.LOST,
        "08": ConnectionCause.LOST,
    }
)
# libpq gives no code for a login that failed. Its own words and the server's are looked for, of
# several servers those that help most.
_CAUSES_BY_TEXT: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), cause)
    for pattern, cause in (
        (r"no pg_hba\.conf entry .*(no encryption|ssl off)", ConnectionCause.TLS),
        (
            (
                r"authentication failed|no password supplied|pg_hba\.conf|not permitted to log"
                r" in|role .* does not exist"
            ),
            ConnectionCause.AUTH,
        ),
        (r"\bssl\b|\btls\b|certificate|gssapi", ConnectionCause.TLS),
        (
            (
                r"too many connections|too many clients|remaining connection slots|no more"
                r" connections allowed"
            ),
            ConnectionCause.LIMIT,
        ),
        (r"database .* does not exist|no such database", ConnectionCause.NO_DATABASE),
        (r"session is read-only|hot standby|in recovery", ConnectionCause.READ_ONLY),
        (
            r"is (starting up|shutting down|in recovery mode)|not yet accepting",
            ConnectionCause.STARTING,
        ),
        (
            r"translate host name|resolve host|name or service not known|name resolution",
            ConnectionCause.DNS,
        ),
        (r"timeout expired|timed out", ConnectionCause.TIMEOUT),
        (
            r"connection refused|no such file or directory|no route to host|network is unreachable",
            ConnectionCause.REFUSED,
        ),
        (
            (
                r"closed the connection|connection (is )?(lost|bad|closed)|terminating|consuming"
                r" input failed"
            ),
            ConnectionCause.LOST,
        ),
    )
)


def connection_cause(error: BaseException) -> ConnectionCause | None:
    """Return why there is no connection, or no more; None where the error is about something else,
    or in words that are not known.
    """
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) or isinstance(
        error, PoolTimeout
    ):
        return None
    if (code := error.sqlstate) is not None:
        return next(
            (cause for start, cause in _CAUSES_BY_CODE.items() if code.startswith(start)), None
        )
    text = str(error)
    return next((cause for pattern, cause in _CAUSES_BY_TEXT if pattern.search(text)), None)
