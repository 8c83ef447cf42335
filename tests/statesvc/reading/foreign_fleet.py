"""A fleet that is not ours: it has the inbox key and the functions of the protocol,
and reads as it is told.
"""

import base64
import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from events.carriers.carrier import Normalizer
from events.crypto.keyring import body_context
from events.crypto.sealing import unsalted
from events.normalized import dump
from tests.world.worker_harness import WorkerHarness, normalize

_CLAIM = """SELECT message_id, token, received_at, sealed_key, sealed
    FROM statesvc.claim('fleet', %s, '30 s', %s, p_normalizer => %s, p_carriers => ARRAY['acme'])"""


@dataclass(frozen=True, slots=True)
class Fleet:
    harness: WorkerHarness
    name: str
    normalizer: Normalizer = normalize

    async def claim(self, stage: str = "raw", limit: int = 64) -> list[Any]:
        return await self.harness.rows(_CLAIM, limit, stage, self.name)

    async def read(self, stage: str = "raw") -> set[UUID]:
        """Read all that falls to it; return which messages it handed over."""
        read: set[UUID] = set()
        while claimed := await self.claim(stage):
            results = [await self._read(*row) for row in claimed]
            token = claimed[0][1]
            assert await self.harness.value(
                "SELECT statesvc.settle(%s, %s::jsonb)", token, json.dumps(results)
            ) == len(claimed)
            read |= {row[0] for row in claimed}
        return read

    async def _read(
        self, message_id: UUID, _token: UUID, received_at: Any, sealed_key: bytes, sealed: bytes
    ) -> dict[str, str]:
        context = body_context(message_id)
        key = self.harness.keyring.inbox.unwrap(sealed_key, context)
        document = dump(self.normalizer(unsalted(key.open(sealed, context)), received_at))
        events = base64.b64encode(key.seal(document, context)).decode()
        return {"message_id": str(message_id), "normalizer": self.name, "events": events}
