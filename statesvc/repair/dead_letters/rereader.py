"""Reading settled messages again for the sake of a letter: what `renormalize` does, of these messages only."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from events.carriers.carrier import Carrier
from events.crypto.keyring import Keyring
from statesvc.inbox.rollouts.code_mapping import Mappings
from statesvc.repair.dead_letters.obstacle import Obstacle
from statesvc.repair.dead_letters.put_back import Connection
from statesvc.repair.renormalize.correction_plan import RenormalizeReport
from statesvc.repair.renormalize.renormalize import RereadTask, reread

MESSAGES_AT_ONCE = 50


@dataclass(slots=True)
class Result:
    """What reading again came to. `obstacles` are of letters."""

    messages: int = 0
    corrected: int = 0
    added: int = 0
    transitions: int = 0
    obstacles: Counter[Obstacle] = field(default_factory=Counter)

    def add(self, report: RenormalizeReport) -> None:
        """Takes in a part."""
        self.messages += report.messages
        self.corrected += report.corrected
        self.added += report.added
        self.transitions += report.transitions

    def take(self, other: "Result") -> None:
        """Takes in what another part came to."""
        self.messages += other.messages
        self.corrected += other.corrected
        self.added += other.added
        self.transitions += other.transitions
        self.obstacles += other.obstacles


@dataclass(frozen=True, slots=True, kw_only=True)
class Rereader:
    """With what, and in whose name. `archive`: the folder of older bodies."""

    keyring: Keyring
    carriers: Mapping[str, Carrier]
    writer: str
    archive: Path | None
    mappings: Mappings = field(default_factory=Mappings)

    async def read(
        self, connection: Connection, carrier_id: str, message_ids: Sequence[UUID], *, actor: str, dry_run: bool = False
    ) -> RenormalizeReport:
        """Reads up to MESSAGES_AT_ONCE messages by the stable version and the mappings that stand now; appends what they lack."""
        await self.mappings.refresh(connection)
        task = RereadTask(
            carrier=self.carriers[carrier_id],
            keyring=self.keyring,
            writer=self.writer,
            actor=actor,
            dry_run=dry_run,
            archive=self.archive,
        )
        return await reread(connection, task, message_ids, self.mappings)
