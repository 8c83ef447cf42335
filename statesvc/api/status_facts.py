"""Facts about the running service that the checks of its status judge, read at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.api.subscription_checks import NAMED_MAX, Unsent
from statesvc.database.copy_faults import read_trigger_faults
from statesvc.database.queries import queries
from statesvc.health.database_sample import (
    UNSEALED_SECONDS_MAX,
    Sample,
    SubscriptionGauges,
    read_sample,
)
from statesvc.health.finding import Finding
from statesvc.health.status_parts import StatusParts
from statesvc.health.storable import storage_findings
from statesvc.http.health import shipped_migrations
from statesvc.log.log_months import Archived, count_archived
from statesvc.queue.depths import NO_DEPTHS, QueueDepths, read_depths
from statesvc.reading.foreign_readings import UnreadShare, list_readings, unread_shares
from statesvc.reading.rollout_store import LaggingWorkers, lagging_workers
from statesvc.sealer.clock_check import ClockCheck, ClockError
from statesvc.sealer.leadership import silent_lead
from statesvc.seams import parts
from statesvc.spool.spool_state import SpoolState, read_spools

_SQL = queries("statesvc.api", "status_facts")

NOTIFICATION_SECONDS_MAX: Final = 900.0
_COUNT_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class HourOfPushes:
    """Pushes of a carrier within the last hour."""

    accepted: int
    duplicates: int
    refused: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """An active kill switch. `carrier_id`: `*` means all."""

    carrier_id: str
    seconds: float
    by: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts that the checks judge, read at once.

    `storage`: the reason for a failing storage; `lead`: of a silent leader.
    """

    sample: Sample
    queue: QueueDepths
    storage: Sequence[Finding]
    of_addons: Mapping[str, Sequence[Finding]]
    archived: Archived
    lead: str | None
    clock_fault: str | None
    trigger_faults: Sequence[str]
    invalid_indexes: Sequence[tuple[str, str]]
    silent_carriers: Mapping[str, float]
    holds: Sequence[Hold]
    lacking: Sequence[LaggingWorkers]
    left: Sequence[UnreadShare]
    unsent: Sequence[Unsent]
    spools: Sequence[SpoolState]
    pushes: Mapping[str, HourOfPushes]
    unread: Sequence[Finding]
    """Parts that could not be read; they yield no findings."""

    def runs(self, role: str) -> bool:
        """Return whether a process of the role was heard of within half a minute."""
        return bool(dict(self.sample.processes).get(role))

    def without(self, role: str) -> str | None:
        """Return the page of the cause if the role does not run."""
        return None if self.runs(role) else "RoleDown"

    @property
    def late_subscriptions(self) -> list[SubscriptionGauges]:
        """Subscriptions with an oldest notification that waits too long."""
        return _late(self.sample)


async def read_facts(connection: AsyncConnection[Any]) -> Facts:
    """Read the facts for the checks.

    A part that can't be read yields no finding; `unread` has the reason.
    """
    status_parts = StatusParts(connection)
    part = status_parts.part

    async def rows(
        about: str, query: str, parameters: Mapping[str, Any] | None = None
    ) -> list[Any]:
        async def read() -> list[Any]:
            return await (await connection.execute(_SQL[query], parameters)).fetchall()

        return await part(about, read, otherwise=[])

    sample = await read_sample(connection, status_parts)
    asked = {
        "count_max": _COUNT_MAX,
        "named_max": NAMED_MAX,
        "late": [each.subscription_id for each in _late(sample)],
    }
    lead = (
        await part("sealer", lambda: silent_lead(connection), otherwise=None)
        if sample.oldest_unsealed_seconds > UNSEALED_SECONDS_MAX
        else None
    )
    return Facts(
        sample=sample,
        queue=await part("queue", lambda: read_depths(connection), otherwise=NO_DEPTHS),
        storage=await part(
            "storage",
            lambda: storage_findings(connection, migrations=shipped_migrations()),
            otherwise=[],
        ),
        archived=await part(
            "add-ons", lambda: count_archived(connection), otherwise=Archived(0, 0)
        ),
        of_addons={
            one.about: await part(one.about, partial(one.find, connection), otherwise=())
            for one in parts("findings")
        },
        lead=None if lead is None else lead.sentence,
        clock_fault=await part("clock", lambda: _clock_fault(connection), otherwise=None),
        trigger_faults=await part(
            "triggers", lambda: read_trigger_faults(connection), otherwise=[]
        ),
        invalid_indexes=await rows("indexes", "invalid_indexes"),
        silent_carriers=dict(await rows("carriers", "silent")),
        holds=[
            Hold(carrier_id=carrier_id, seconds=seconds, by=by, why=why)
            for carrier_id, seconds, by, why in await rows("kill switch", "holds")
        ],
        lacking=await part("readers", lambda: lagging_workers(connection), otherwise=[]),
        left=unread_shares(await part("readers", lambda: list_readings(connection), otherwise=[])),
        unsent=[Unsent(*row) for row in await rows("subscriptions", "unsent", asked)],
        spools=await part("spool", lambda: read_spools(connection), otherwise=[]),
        pushes={
            carrier_id: HourOfPushes(*counts)
            for carrier_id, *counts in await rows("pushes", "pushes")
        },
        unread=status_parts.findings(),
    )


def _late(sample: Sample) -> list[SubscriptionGauges]:
    return [
        each
        for each in sample.subscriptions
        if each.oldest_ready_seconds > NOTIFICATION_SECONDS_MAX
    ]


async def _clock_fault(connection: AsyncConnection[Any]) -> str | None:
    try:
        await ClockCheck().check(connection)
    except ClockError as error:
        return str(error)
    return None
