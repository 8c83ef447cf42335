"""All calls of the read API and of the operators."""

from collections.abc import Sequence
from pathlib import Path

from events.carriers import CARRIERS
from events.keyring import Keyring
from statesvc.api import (
    allotments,
    dead_letter_replay,
    dead_letters,
    erasure,
    evidence,
    legal_holds,
    log,
    messages,
    notices,
    queue,
    rollouts,
    shipments,
    workers,
)
from statesvc.api.rollouts import Wakes
from statesvc.http.keys import Connections
from statesvc.http.operation import Route
from statesvc.log_archive.reading import LogArchive


def routes(*, pool: Connections, keyring: Keyring, waker: Wakes, archive: Path | None, backup_days: int) -> Sequence[Route]:
    """For the application that the role `api` serves. `archive`: the folder of older bodies and of archived months of the log.

    `backup_days`: how long backups of the database are kept.
    """
    log_archive = LogArchive(archive)
    return [
        *shipments.routes(pool, keyring, log_archive),
        *erasure.routes(pool, keyring, folder=archive, backup_days=backup_days),
        *messages.routes(pool, keyring, archive),
        *evidence.routes(pool, keyring, archive, log_archive),
        *log.routes(pool, log_archive),
        *queue.routes(pool),
        *dead_letters.routes(pool),
        *dead_letter_replay.routes(pool, keyring, waker, carriers=CARRIERS, archive=archive),
        *rollouts.routes(pool, waker),
        *legal_holds.routes(pool),
        *allotments.routes(pool, waker),
        *workers.routes(pool),
        *notices.routes(pool),
    ]
