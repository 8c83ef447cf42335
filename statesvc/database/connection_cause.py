"""Causes of failed connections, in one word for logs."""

import re
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import psycopg
from psycopg_pool import PoolTimeout


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
"""libpq gives no code for a login that failed.

Its own words and the server's are looked for, of several servers those that help most.
"""


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
