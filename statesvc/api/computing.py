"""Long computations in other processes, so that the event loop stays responsive.

Those of more than a few milliseconds. A process has its own connection to the database, reads,
opens, proves and prints; its result is the answer's bytes.
"""

from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from events.crypto.keyring import Keyring
from statesvc.api.call_limits import CallLimits
from statesvc.api.parameters import AuditParameters
from statesvc.background.process_pool import PoolFullError, ProcessDiedError, ProcessPool
from statesvc.database.pool import Connections
from statesvc.files.archive_folder import ArchivePath
from statesvc.http.problem import Code, Problem
from statesvc.log.history import History
from statesvc.shipments.find import StoredShipment

AUDIT: Final = "audit"
# Time that an answer may take, waiting for a process that computes included.
COMPUTING_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Sources that a computation reads."""

    pool: Connections
    keyring: Keyring = field(repr=False)
    folder: ArchivePath | None
    archive: History
    limits: CallLimits = field(default_factory=CallLimits)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRequest:
    """A request for an audit. `personal`: with personal parts."""

    asked: AuditParameters
    personal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedAudit:
    """The document and its shipment."""

    content: bytes
    shipment: StoredShipment


class Computing(Protocol):
    # what the task answers
    async def compute(self, task: str, wanted: object) -> Any:  # noqa: ANN401
        """Run the named task. Raises Problem and the errors of its sources."""


class ComputingProcesses:
    """Computations in the processes of a pool."""

    def __init__(self, processes: ProcessPool) -> None:
        self._processes = processes

    # what the task answers
    async def compute(self, task: str, wanted: object) -> Any:  # noqa: ANN401
        try:
            return await self._processes.call(task, wanted)
        except PoolFullError:
            raise Problem(
                Code.OVERLOADED,
                "all processes that compute are busy, and more calls wait for them; try again",
            ) from None
        except ProcessDiedError:
            raise Problem(
                Code.INTERNAL_ERROR,
                "the process that computed the answer died; the log has the reason",
            ) from None
