"""The calls about subscriptions, for the role `api`."""

from collections.abc import Sequence
from typing import Final

from events.crypto.keyring import Keyring
from statesvc.api.operation_context import Context, no_computing
from statesvc.api.personal_reads import PersonalReadings
from statesvc.api.replica_reads import StaleReads
from statesvc.api.subscriptions import chosen_secrets, portal_links, replay_call, subscription_operations
from statesvc.database.pool import Connections
from statesvc.database.wakeups.waker import Wakes
from statesvc.delivery.addresses import Network
from statesvc.delivery.targets import Targets
from statesvc.http.operation import Route, routes_of
from statesvc.log.archive.log_archive import LogArchive
from statesvc.log.tombstones import Tombstones

OPERATIONS: Final = (
    *replay_call.OPERATIONS,
    *portal_links.OPERATIONS,
    *chosen_secrets.OPERATIONS,
    *subscription_operations.OPERATIONS,
)


def routes(
    *,
    pool: Connections,
    keyring: Keyring,
    waker: Wakes,
    targets: Targets,
    allowed: Sequence[Network],
    archive: LogArchive,
    readings: PersonalReadings,
) -> Sequence[Route]:
    """The calls. The caller opens and closes the targets."""

    async def opened() -> Keyring:
        return keyring

    async def open_targets() -> Targets:
        return targets

    context = Context(
        pool=pool,
        waker=waker,
        readings=readings,
        archive=None,
        keyring=opened,
        carriers=dict,
        backup_days=0,
        tombstones=Tombstones,
        log_archive=lambda: archive,
        targets=open_targets,
        allowed=allowed,
        computing=no_computing,
        reads=lambda: StaleReads(pool, archive, None),
    )
    return routes_of(OPERATIONS, context)
