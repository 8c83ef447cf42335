"""All calls of the read API and of the operators."""

from collections.abc import Mapping, Sequence

from events.carriers import CARRIERS
from events.carriers.carrier import Carrier
from events.crypto.keyring import Keyring
from statesvc.api import action_operations as actions
from statesvc.api import awaited_operations as awaited
from statesvc.api import code_mapping_operations as code_mappings
from statesvc.api import dead_letter_operations as dead_letters
from statesvc.api import erasure_operations as erasure
from statesvc.api import evidence_operations as evidence
from statesvc.api import expectation_operations as expectations
from statesvc.api import key_operations as keys
from statesvc.api import legal_hold_operations as legal_holds
from statesvc.api import log_calls as log
from statesvc.api import lookup_operations as lookups
from statesvc.api import message_calls as messages
from statesvc.api import queue_operations as queue
from statesvc.api import reference_operations as references
from statesvc.api import report_calls as reports
from statesvc.api import rollout_operations as rollouts
from statesvc.api import shipment_list_operations as shipment_list
from statesvc.api import shipment_operations as shipments
from statesvc.api import status_operations as status
from statesvc.api.computations import ComputingHere
from statesvc.api.computing import Computing, Sources
from statesvc.api.operation_context import Context, no_targets
from statesvc.api.personal_reads import PersonalReadings
from statesvc.api.replica_reads import Replica, StaleReads
from statesvc.database.pool import Connections
from statesvc.database.wakeups.waker import Wakes
from statesvc.http.operation import Route, routes_of
from statesvc.log.archive.folder import ArchivePath
from statesvc.log.archive.log_archive import LogArchive
from statesvc.log.tombstones import Tombstones


def routes(
    *,
    pool: Connections,
    keyring: Keyring,
    waker: Wakes,
    archive: ArchivePath | None,
    backup_days: int,
    tombstones: Tombstones,
    readings: PersonalReadings,
    computing: Computing | None = None,
    replica: Replica | None = None,
    carriers: Mapping[str, Carrier] = CARRIERS,
) -> Sequence[Route]:
    """For the application that the role `api` serves. `archive`: the folder of older bodies and of archived months of the log.

    `backup_days`: for how many days backups of the database are stored. `tombstones`: where erasures are published outside of it.
    `computing`: what takes long; here, unless it is given. `replica`: a standby for calls that take `max_staleness`.
    `carriers`: those that messages are read again with.
    """
    log_archive = LogArchive(archive)
    sources = Sources(pool=pool, keyring=keyring, folder=archive, archive=log_archive)
    computing = computing or ComputingHere(sources)

    async def opened() -> Keyring:
        return keyring

    async def computing_here() -> Computing:
        return computing

    reads = StaleReads(pool, log_archive, replica)
    context = Context(
        pool=pool,
        waker=waker,
        readings=readings,
        archive=archive,
        keyring=opened,
        carriers=lambda: carriers,
        backup_days=backup_days,
        tombstones=lambda: tombstones,
        log_archive=lambda: log_archive,
        targets=no_targets,
        allowed=(),
        computing=computing_here,
        reads=lambda: reads,
    )
    return [
        *routes_of(shipment_list.OPERATIONS, context),
        *routes_of(lookups.OPERATIONS, context),
        *routes_of(references.OPERATIONS, context),
        *routes_of(awaited.OPERATIONS, context),
        *routes_of(shipments.OPERATIONS, context),
        *routes_of(erasure.OPERATIONS, context),
        *messages.routes(pool, keyring, archive, readings),
        *routes_of(evidence.OPERATIONS, context),
        *log.routes(pool, log_archive),
        *routes_of(dead_letters.OPERATIONS, context),
        *routes_of(code_mappings.OPERATIONS, context),
        *routes_of(expectations.OPERATIONS, context),
        *reports.routes(pool),
        *routes_of(rollouts.OPERATIONS, context),
        *routes_of(legal_holds.OPERATIONS, context),
        *routes_of(queue.OPERATIONS, context),
        *routes_of(keys.OPERATIONS, context),
        *routes_of(status.OPERATIONS, context),
        *routes_of(actions.OPERATIONS, context),
    ]
