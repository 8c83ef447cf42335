"""The computations by their names, for the process that runs them."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from statesvc.api.computing import AUDIT, AuditRequest, PrintedAudit, Sources
from statesvc.api.shipment_operations import print_audit
from statesvc.background.process_pool import Task
from statesvc.seams import named_parts


@dataclass(frozen=True, slots=True)
class ComputingHere:
    """Computations in this process, in this event loop."""

    sources: Sources

    # what the task answers
    async def compute(self, task: str, wanted: object) -> Any:  # noqa: ANN401
        return await self.tasks()[task](wanted)

    def tasks(self) -> dict[str, Task]:
        return {
            AUDIT: self._audit,
            **{name: partial(task, self.sources) for name, task in named_parts("computations")},
        }

    async def _audit(self, wanted: AuditRequest) -> PrintedAudit:
        async with self.sources.pool.connection() as connection:
            return await print_audit(connection, self.sources, wanted)
