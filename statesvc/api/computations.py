"""The computations by their names, for the process that runs them."""

from dataclasses import dataclass

from statesvc.addons.evidence.evidence_operations import print_evidence
from statesvc.api.computing import (
    AUDIT,
    EVIDENCE,
    AuditWanted,
    EvidenceWanted,
    PrintedAudit,
    PrintedEvidence,
    Sources,
)
from statesvc.api.shipment_operations import print_audit
from statesvc.background.process_pool import Task


@dataclass(frozen=True, slots=True)
class ComputingHere:
    """Computations in this process, in this event loop."""

    sources: Sources

    async def evidence(self, wanted: EvidenceWanted) -> PrintedEvidence:
        return await print_evidence(self.sources, wanted)

    async def audit(self, wanted: AuditWanted) -> PrintedAudit:
        async with self.sources.pool.connection() as connection:
            return await print_audit(connection, self.sources, wanted)

    def tasks(self) -> dict[str, Task]:
        return {EVIDENCE: self.evidence, AUDIT: self.audit}
