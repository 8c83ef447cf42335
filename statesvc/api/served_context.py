"""Context of the calls of the role `api`: all of it is open for as long as the process serves."""

from collections.abc import Mapping, Sequence

from events.carriers import CARRIERS
from events.carriers.carrier import Carrier
from events.crypto.keyring import Keyring
from statesvc.api.call_limits import CallLimits
from statesvc.api.computations import ComputingHere
from statesvc.api.computing import Computing, Sources
from statesvc.api.operation_context import Context, no_targets
from statesvc.api.personal_reads import PersonalReads
from statesvc.database.pool import Connections
from statesvc.database.wakeups.wakeup import Wakes
from statesvc.delivery.addresses import Network
from statesvc.delivery.targets import Targets
from statesvc.files.archive_folder import ArchivePath
from statesvc.log.history import History
from statesvc.log.tombstones import Tombstones


def served_context(
    *,
    pool: Connections,
    keyring: Keyring,
    waker: Wakes,
    readings: PersonalReads,
    archive: ArchivePath | None = None,
    backup_days: int = 0,
    tombstones: Tombstones = Tombstones(),  # noqa: B008 - a value, without any place
    targets: Targets | None = None,
    allowed: Sequence[Network] = (),
    computing: Computing | None = None,
    carriers: Mapping[str, Carrier] = CARRIERS,
    console_url: str | None = None,
    limits: CallLimits = CallLimits(),  # noqa: B008 - a value
) -> Context:
    """Make the context of these parts. The caller opens and closes them.

    Without `computing`, long computations run in this process.
    """
    log_archive = History(archive)
    computing = computing or ComputingHere(
        Sources(pool=pool, keyring=keyring, folder=archive, archive=log_archive, limits=limits)
    )

    async def opened_keyring() -> Keyring:
        return keyring

    async def opened_targets() -> Targets:
        return targets or await no_targets()

    async def started_computing() -> Computing:
        return computing

    return Context(
        pool=pool,
        waker=waker,
        readings=readings,
        archive=archive,
        keyring=opened_keyring,
        carriers=lambda: carriers,
        backup_days=backup_days,
        tombstones=lambda: tombstones,
        log_archive=lambda: log_archive,
        targets=opened_targets,
        allowed=allowed,
        computing=started_computing,
        console_url=console_url,
        limits=limits,
    )
