"""Context of the API's operations, in the role `api` and in the process of a command alike."""

import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from events.carriers.carrier import Carrier
from events.crypto.keyring import Keyring
from statesvc.api.call_limits import CallLimits
from statesvc.api.personal_reads import PersonalReads
from statesvc.database.keyring_store import MasterKeyError
from statesvc.database.kms.kms import KmsError
from statesvc.database.pool import Connections
from statesvc.database.wakeups.wakeup import Wakes
from statesvc.files.archive_folder import ArchivePath
from statesvc.http.problem import Code, Problem
from statesvc.http.unknown_carrier import unknown_carrier

if TYPE_CHECKING:
    # loaded by the operations that use them: a command that reads a queue must not wait for them
    from statesvc.api.computing import Computing
    from statesvc.delivery.addresses import Network
    from statesvc.delivery.targets import Targets
    from statesvc.log.history import History
    from statesvc.log.tombstones import Tombstone, Tombstones
    from statesvc.repair.renormalize.history_walk import Rereader


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Resources of operations; costly ones are functions, called on demand.

    `archive`: the folder of older bodies and of archived months of the log. `carriers`: those
    that messages are read again with. `backup_days`: for how many days backups of the database
    are stored. `tombstones`: the places outside of the database where erasures and revocations
    are published. `targets`: sends to receivers in the networks that are `allowed`.
    `computing`: runs long computations. `console_url`: the console's address without
    `/console`.
    """

    pool: Connections
    waker: Wakes
    readings: PersonalReads
    archive: ArchivePath | None
    keyring: Callable[[], Awaitable[Keyring]]
    carriers: Callable[[], Mapping[str, Carrier]]
    backup_days: int
    tombstones: "Callable[[], Tombstones]"
    log_archive: "Callable[[], History]"
    targets: "Callable[[], Awaitable[Targets]]"
    allowed: "Sequence[Network]"
    computing: "Callable[[], Awaitable[Computing]]"
    console_url: str | None = None
    limits: CallLimits = field(default_factory=CallLimits)

    async def keyring_if_any(self) -> Keyring | None:
        """Return the keyring; None for a command on a machine without the master key."""
        try:
            return await self.keyring()
        except (MasterKeyError, KmsError):
            return None

    def carrier(self, carrier_id: str) -> Carrier:
        """Return the carrier. Raises the problem that there is none."""
        carrier = self.carriers().get(carrier_id)
        if carrier is None:
            raise unknown_carrier(carrier_id, self.carriers())
        return carrier

    def refuse_unknown(self, carrier_id: str | None) -> None:
        """Raise the problem of an unknown carrier.

        Only for a filter without results: rows of a carrier of an earlier release are still
        shown.
        """
        if carrier_id is not None:
            self.carrier(carrier_id)

    async def rereader(self, work: str) -> "Rereader":
        """Return the reader of stored messages for this work."""
        from statesvc.repair.renormalize.history_walk import Rereader  # noqa: PLC0415 - as above

        return Rereader(
            keyring=await self.keyring(),
            carriers=self.carriers(),
            writer=writer(work),
            archive=self.archive,
        )

    async def publish(self, tombstones: "Sequence[Tombstone]") -> list[str]:
        """Publish tombstones and return their places.

        Raises Problem: the erasure is done here, and not complete.
        """
        from statesvc.log.tombstones import TombstoneError  # noqa: PLC0415 - as above

        places = self.tombstones()
        try:
            await places.publish(tombstones)
        except TombstoneError as error:
            detail = f"done here, but a restore would undo it: {error}; ask again to complete it"
            raise Problem(Code.TOMBSTONE_UNAVAILABLE, detail) from error
        return places.names

    async def wake(self, channels: Iterable[str]) -> None:
        """Notify listeners on these channels; called after the commit."""
        for channel in sorted(channels):
            self.waker.wake(channel)


async def no_targets() -> "Targets":
    """Refuse: these calls don't send to receivers."""
    raise NotImplementedError("these calls send nothing to receivers")


def writer(work: str) -> str:
    """Return the name under which the log records the batches of this work."""
    return f"{socket.gethostname()}-{work}"
