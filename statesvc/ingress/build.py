"""Puts ingress together for the composition root."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from events.carriers.carrier import Carrier
from events.crypto.keyring import Keyring
from statesvc.database.pool import Pool
from statesvc.http.api_keys import Keys
from statesvc.http.operation import Route
from statesvc.ingress.bounds import DiskRoom, MemoryBound
from statesvc.ingress.carrier_door import build_doors
from statesvc.ingress.group_commit import GroupCommit, Wakes
from statesvc.ingress.oauth import Tokens
from statesvc.ingress.webhooks import Webhooks
from statesvc.settings.service_settings import Settings
from statesvc.telemetry.metrics import Telemetry


@dataclass(frozen=True, slots=True)
class Ingress:
    """Start `group_commit` before the server listens; stop it after the server has stopped."""

    group_commit: GroupCommit
    routes: Sequence[Route]
    memory: MemoryBound


def build_ingress(
    settings: Settings,
    *,
    carriers: Iterable[Carrier],
    pool: Pool,
    keyring: Keyring,
    keys: Keys,
    waker: Wakes,
    telemetry: Telemetry,
    local_data: Path | None,
) -> Ingress:
    """`pool` has the ingress limits (500 ms to acquire, 1 s a statement); `local_data`: the embedded server's folder, None otherwise."""
    memory = MemoryBound(settings.ingress.memory_bytes_max)
    group_commit = GroupCommit(pool, memory=memory, waker=waker)
    doors = build_doors(carriers, settings)
    webhooks = Webhooks(
        doors=doors,
        keys=keys,
        keyring=keyring,
        group_commit=group_commit,
        memory=memory,
        disk=DiskRoom(local_data, free_bytes_min=settings.ingress.disk_free_bytes_min),
        telemetry=telemetry,
    )
    return Ingress(group_commit, [*webhooks.routes(), *Tokens(doors, memory=memory).routes()], memory)
