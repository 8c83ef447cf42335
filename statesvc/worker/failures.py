"""What to do when applying a batch fails: wait and try again, take the batch apart, or give one message up. Pure, as data.

A transient failure says nothing about the messages: the same batch is tried again while its lease lasts. Any other failure is
some message's own; the batch is halved until that message stands alone, so the others are not held up.
"""

import random
from enum import Enum
from typing import Final

import psycopg
from psycopg import errors as pg

RETRY_FIRST_SECONDS: Final = 5.0
RETRY_MAX_SECONDS: Final = 300.0
RETRY_JITTER: Final = 0.25
RETRIES_MAX: Final = 20
"""Times that a message is given back for a transient failure, over more than an hour, before a human must look."""
_AGAIN_FIRST_SECONDS: Final = 0.1
_AGAIN_MAX_SECONDS: Final = 2.0


class Failure(Enum):
    """Whose fault it is."""

    TRANSIENT = "transient"
    PERMANENT = "permanent"


_TRANSIENT_CLASSES: Final = (
    "08",  # connection
    "25P03",  # idle in transaction too long: this worker was frozen
    "40",  # serialization, deadlock
    "53",  # out of memory, disk, connections
    "55",  # lock not available
    "57",  # shutdown, crash, statement timeout
    "58",  # system error
)


def classify(error: BaseException) -> Failure:
    """Transient: the connection, the server's state, a lock, a resource. Everything else would fail again."""
    if isinstance(error, psycopg.Error) and error.sqlstate is not None:
        return Failure.TRANSIENT if error.sqlstate.startswith(_TRANSIENT_CLASSES) else Failure.PERMANENT
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | pg.ConnectionTimeout | OSError | TimeoutError):
        return Failure.TRANSIENT
    return Failure.PERMANENT


def again_seconds(attempt: int) -> float:
    """Pause before the same batch is tried again under its lease; `attempt` from 0, full jitter."""
    return random.uniform(0.0, min(_AGAIN_MAX_SECONDS, _AGAIN_FIRST_SECONDS * 2 ** min(attempt, 10)))  # noqa: S311 - jitter


def retry_seconds(retries: int) -> float:
    """Pause before a message is available again after its lease was given up; `retries` from 0, 5 s .. 300 s, +-25 %."""
    pause: float = min(RETRY_MAX_SECONDS, RETRY_FIRST_SECONDS * 2 ** min(retries, 10))
    return pause * random.uniform(1 - RETRY_JITTER, 1 + RETRY_JITTER)  # noqa: S311 - jitter
