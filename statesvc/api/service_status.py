"""How the service does, worst first: what needs a human, what is worth knowing, and which page of the runbook says what to do.

The alerts take their thresholds from here (deploy/prometheus/rules.py), so the person who is called finds here why.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection
from yarl import URL

from statesvc.database.queries import queries
from statesvc.inbox.queue_depths import QueueDepths, read_depths
from statesvc.inbox.rollouts.dial import lacking_workers
from statesvc.operations.database_gauges import Sample, read_sample

_SQL = queries("statesvc.api", "service_status")

READY_SECONDS_MAX: Final = 60.0
HELD_SECONDS_MAX: Final = 4 * 3600.0
UNSEALED_SECONDS_MAX: Final = 60.0
TRANSACTION_SECONDS_MAX: Final = 900.0
HORIZON_SECONDS_MIN: Final = 4 * 86_400.0
NOTIFICATION_SECONDS_MAX: Final = 900.0
_ROLES: Final = ("worker", "notifier", "sealer")
_COUNT_MAX: Final = 10_000
_SHOWN_MAX: Final = 20
_DAY: Final = 86_400.0


class Urgency(StrEnum):
    """Who should act."""

    NOW = "now"
    """A promise is broken, or will be soon."""
    HUMAN = "human"
    """Waits for a decision that the service cannot take."""
    NOTE = "note"
    """Worth knowing; nobody need do anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """One sentence. `page`: of docs/runbook, without `.md`; None: nothing is to be done."""

    urgency: Urgency
    about: str
    text: str
    page: str | None = None


class Pushes(NamedTuple):
    """What a carrier pushed within the last hour."""

    accepted: int
    duplicates: int
    refused: int


class Unsent(NamedTuple):
    """A subscription that takes nothing."""

    subscription_id: str
    url: str
    failing_seconds: float | None
    failures: int | None
    last_outcome: str | None
    last_status_code: int | None
    disabled_seconds: float | None
    disabled_why: str | None
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStatus:
    """What was read, and what follows from it."""

    sample: Sample
    queue: QueueDepths
    pushes: Mapping[str, Pushes]
    troubles: list[Trouble]

    @property
    def needs_human(self) -> bool:
        """Whether anything is to be done."""
        return any(trouble.urgency is not Urgency.NOTE for trouble in self.troubles)


async def read_status(connection: AsyncConnection[Any]) -> ServiceStatus:
    """Reads and judges."""
    sample, queue = await read_sample(connection), await read_depths(connection)
    refusal = await (await connection.execute(_SQL["refusal"])).fetchone()
    silent = await (await connection.execute(_SQL["silent"])).fetchall()
    pushes = await (await connection.execute(_SQL["pushes"])).fetchall()
    lacking = await lacking_workers(connection)
    unsent = await (await connection.execute(_SQL["unsent"], {"count_max": _COUNT_MAX, "limit": _SHOWN_MAX})).fetchall()
    troubles = [
        *_refusal(refusal),
        *_promises(sample),
        *_roles(sample),
        *_database(sample),
        *_carriers(queue, dict(silent)),
        *(Trouble(urgency=Urgency.HUMAN, about=one.carrier_id, text=one.sentence, page="WorkersOutdated") for one in lacking),
        *_dead_letters(sample),
        *_subscribers(sample, [Unsent(*row) for row in unsent]),
    ]
    order = list(Urgency)
    troubles.sort(key=lambda trouble: order.index(trouble.urgency))
    return ServiceStatus(sample=sample, queue=queue, pushes={carrier_id: Pushes(*rest) for carrier_id, *rest in pushes}, troubles=troubles)


def _refusal(refusal: tuple[Any, ...] | None) -> Iterator[Trouble]:
    if refusal is not None:
        why, seconds = refusal
        text = f"for {duration(seconds)} nothing is sealed and nobody is notified: {why}"
        yield Trouble(urgency=Urgency.NOW, about="sealer", text=text, page="SealerRefuses")


def _promises(sample: Sample) -> Iterator[Trouble]:
    for promise in sample.promises:
        if promise.missing:
            what = "acknowledged messages are nowhere" if promise.promise == "settled" else "notifications that are due are nowhere"
            yield Trouble(urgency=Urgency.NOW, about="promises", text=f"{promise.missing:,} {what}", page="PromiseBroken")


def _roles(sample: Sample) -> Iterator[Trouble]:
    running = dict(sample.processes)
    for role in _ROLES:
        if not running.get(role):
            text = f"no {role} was heard of within half a minute"
            yield Trouble(urgency=Urgency.NOW, about="processes", text=text, page="RoleDown")
    if not running.get("ingress") and not running.get("api"):
        yield Trouble(urgency=Urgency.NOW, about="processes", text="nothing takes webhooks: neither ingress nor api runs", page="RoleDown")


def _database(sample: Sample) -> Iterator[Trouble]:
    if sample.oldest_unsealed_seconds > UNSEALED_SECONDS_MAX:
        text = f"the oldest entry has waited {duration(sample.oldest_unsealed_seconds)} to be sealed: feed, stream and proofs stop there"
        yield Trouble(urgency=Urgency.NOW, about="sealer", text=text, page="SealerStopped")
    horizon = sample.partition_horizon_seconds
    if horizon is not None and horizon < HORIZON_SECONDS_MIN:
        text = f"in {duration(horizon)} a table has no partition left, and every append stops"
        yield Trouble(urgency=Urgency.NOW, about="partitions", text=text, page="PartitionHorizon")
    if sample.oldest_transaction_seconds > TRANSACTION_SECONDS_MAX:
        text = f"a transaction has been open for {duration(sample.oldest_transaction_seconds)}: dead rows pile up"
        yield Trouble(urgency=Urgency.HUMAN, about="database", text=text, page="OldTransaction")


def _carriers(queue: QueueDepths, silent: Mapping[str, float]) -> Iterator[Trouble]:
    for carrier_id, lane in queue["carriers"].items():
        oldest, held = lane["oldest_ready_seconds"], lane["oldest_held_seconds"]
        if oldest is not None and oldest > READY_SECONDS_MAX:
            text = f"{lane['ready']:,} messages wait, the first for {duration(oldest)}; the promise is 2 minutes"
            yield Trouble(urgency=Urgency.NOW, about=carrier_id, text=text, page="Lag")
        if lane["held"]:
            text = f"on hold: {lane['held']:,} messages wait, the first for {duration(held or 0)}"
            urgency = Urgency.HUMAN if (held or 0) > HELD_SECONDS_MAX else Urgency.NOTE
            yield Trouble(urgency=urgency, about=carrier_id, text=text, page="CarrierHeld")
    for carrier_id, seconds in silent.items():
        text = f"pushed nothing for {duration(seconds)}, and plenty at this time yesterday"
        yield Trouble(urgency=Urgency.HUMAN, about=carrier_id, text=text, page="CarrierSilent")


def _dead_letters(sample: Sample) -> Iterator[Trouble]:
    for kind, cause, count in sorted(sample.dead_letters, key=lambda row: -row[2]):
        text = f"{count:,} dead letters wait: {kind}, {cause}"
        page = "UnknownCodes" if kind == "code" else "DeadLettersGrow"
        yield Trouble(urgency=Urgency.HUMAN, about="dead letters", text=text, page=page)


def _subscribers(sample: Sample, unsent: list[Unsent]) -> Iterator[Trouble]:
    named = set()
    for one in unsent:
        named.add(one.subscription_id)
        about = f"subscription {one.subscription_id[:8]}"
        host = URL(one.url).host or "?"
        if one.disabled_seconds is not None:
            text = f"{host} was disabled {duration(one.disabled_seconds)} ago ({one.disabled_why}); {one.waiting:,} notifications wait"
        else:
            answer = one.last_outcome if one.last_status_code is None else f"{one.last_outcome}, {one.last_status_code}"
            text = (
                f"{host} has taken nothing for {duration(one.failing_seconds or 0)} "
                f"({one.failures} tries failed, the last: {answer}); {one.waiting:,} notifications wait"
            )
        yield Trouble(urgency=Urgency.HUMAN, about=about, text=text, page="SubscriberFailing")
    for late in sample.subscriptions:
        if late.subscription_id not in named and late.oldest_ready_seconds > NOTIFICATION_SECONDS_MAX:
            text = f"{late.waiting:,} notifications wait, the first for {duration(late.oldest_ready_seconds)}: it is slow, or limited"
            yield Trouble(urgency=Urgency.HUMAN, about=f"subscription {late.subscription_id[:8]}", text=text, page="SubscriberFailing")


def duration(seconds: float) -> str:
    """As people say it, in two units at most."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    units = ((int(_DAY), "d"), (3600, "h"), (60, "min"), (1, "s"))
    left = int(seconds)
    parts: list[str] = []
    for size, unit in units:
        if left >= size or parts:
            parts.append(f"{left // size} {unit}")
            left %= size
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if not part.startswith("0 ")) or "0 s"
