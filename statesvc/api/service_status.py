"""How the service does, worst first: what needs a human, what is worth knowing, and which page of the runbook says what to do.

The alerts take their thresholds from here (deploy/prometheus/rules.py), so the person who is called finds here why.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from http import HTTPStatus
from itertools import groupby
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection
from yarl import URL

from statesvc.background.duration import duration
from statesvc.database.queries import queries
from statesvc.health.database_gauges import Sample, SubscriptionGauges, read_sample
from statesvc.health.running_processes import last_minute, why_not_writable
from statesvc.http.problem import PROBLEM_KINDS, Code
from statesvc.log.archive.archive_identity import ArchiveFailure, ArchiveRefusal, read_archive_failures, read_refusal
from statesvc.queue.depths import QueueDepths, read_depths
from statesvc.reading.foreign_readings import left_shares, list_readings
from statesvc.reading.rollout_store import lacking_workers
from statesvc.sealer.clock_check import ClockCheck, ClockError
from statesvc.sealer.lead import silent_lead

_SQL = queries("statesvc.api", "service_status")

READY_SECONDS_MAX: Final = 60.0
HELD_SECONDS_MAX: Final = 4 * 3600.0
UNSEALED_SECONDS_MAX: Final = 60.0
TRANSACTION_SECONDS_MAX: Final = 900.0
HORIZON_SECONDS_MIN: Final = 4 * 86_400.0
NOTIFICATION_SECONDS_MAX: Final = 900.0
_ROLES: Final = ("worker", "notifier", "sealer")
_COUNT_MAX: Final = 10_000
_NAMED_MAX: Final = 3
"""Subscriptions of one trouble that are named each; more are one line, with the worst."""
UNACKNOWLEDGED_SHARE_MAX: Final = 0.0005
"""Of the pushes of a minute: what the objective leaves."""
_TAKES_WEBHOOKS: Final = frozenset({"ingress", "api"})
CAUSES: Final[Mapping[str, str]] = {
    Code.STORAGE_LOW.value: "the database's disk is at its bound",
    Code.DATABASE_UNAVAILABLE.value: "the database was away",
    Code.NOT_DURABLE.value: "the database did not store them, or not in time",
    Code.OVERLOADED.value: "too many bodies in memory, or a process that stopped",
    Code.SIGNING_KEYS_UNAVAILABLE.value: "a carrier's published keys could not be fetched",
    Code.INTERNAL_ERROR.value: "a defect; the log has the reason",
}
"""Why a push was not acknowledged, by code of the problem."""
_OF_THE_SENDER: Final = frozenset(code.value for code, kind in PROBLEM_KINDS.items() if kind.status < HTTPStatus.INTERNAL_SERVER_ERROR)


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
    """One sentence. `page`: of docs/runbook, without `.md`; None: nothing is to be done.

    Of subscriptions: the one that it is about, or the state that all of them have.
    """

    urgency: Urgency
    about: str
    text: str
    page: str | None = None
    subscription_id: str | None = None
    subscription_state: str | None = None


_SUBSCRIBER: Final = Trouble(urgency=Urgency.HUMAN, about="", text="", page="SubscriberFailing")


class Pushes(NamedTuple):
    """What a carrier pushed within the last hour."""

    accepted: int
    duplicates: int
    refused: int


class Unsent(NamedTuple):
    """A subscription that takes nothing. `alike`: how many are disabled as it is, or fail as it does."""

    subscription_id: str
    url: str
    failing_seconds: float | None
    failures: int | None
    last_outcome: str | None
    last_status_code: int | None
    disabled_seconds: float | None
    disabled_why: str | None
    alike: int
    waiting: int

    @property
    def state(self) -> str:
        """By the list's own filter."""
        return "failing" if self.disabled_seconds is None else "disabled"

    @property
    def sentence(self) -> str:
        """What happened to it."""
        host = URL(self.url).host or "?"
        if self.disabled_seconds is not None:
            return f"{host} was disabled {duration(self.disabled_seconds)} ago ({self.disabled_why}); {self.waiting:,} notifications wait"
        answer = self.last_outcome if self.last_status_code is None else f"{self.last_outcome}, {self.last_status_code}"
        return (
            f"{host} has taken nothing for {duration(self.failing_seconds or 0)} "
            f"({self.failures} tries failed, the last: {answer}); {self.waiting:,} notifications wait"
        )


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
    read_only = await why_not_writable(connection)
    late = [each for each in sample.subscriptions if each.oldest_ready_seconds > NOTIFICATION_SECONDS_MAX]
    asked = {"count_max": _COUNT_MAX, "named_max": _NAMED_MAX, "late": [each.subscription_id for each in late]}
    unsent = [Unsent(*row) for row in await (await connection.execute(_SQL["unsent"], asked)).fetchall()]
    troubles = [
        *_refusal(refusal),
        *_archive(await read_refusal(connection), await read_archive_failures(connection)),
        *_promises(sample),
        *_pushes(sample, read_only),
        *(() if read_only is not None else _roles(sample)),
        *_database(sample),
        *await _sealing(connection, sample),
        *_carriers(queue, dict(silent)),
        *(Trouble(urgency=Urgency.HUMAN, about=one.carrier_id, text=one.sentence, page="WorkersOutdated") for one in lacking),
        *(
            Trouble(urgency=Urgency.NOW if left.is_stuck else Urgency.HUMAN, about=left.carrier_id, text=left.sentence, page="Lag")
            for left in left_shares(await list_readings(connection))
        ),
        *_dead_letters(sample),
        *_unsent(unsent),
        *_slow(late, {one.subscription_id for one in unsent}),
    ]
    order = list(Urgency)
    troubles.sort(key=lambda trouble: order.index(trouble.urgency))
    return ServiceStatus(sample=sample, queue=queue, pushes={carrier_id: Pushes(*rest) for carrier_id, *rest in pushes}, troubles=troubles)


def _refusal(refusal: tuple[Any, ...] | None) -> Iterator[Trouble]:
    if refusal is not None:
        why, seconds = refusal
        text = f"for {duration(seconds)} nothing is sealed and nobody is notified: {why}"
        yield Trouble(urgency=Urgency.NOW, about="sealer", text=text, page="SealerRefuses")


def _archive(refusal: ArchiveRefusal | None, failures: Sequence[ArchiveFailure]) -> Iterator[Trouble]:
    if refusal is not None:
        text = f"for {duration(refusal.seconds)} nothing is archived and nothing leaves the database: {refusal.why}"
        yield Trouble(urgency=Urgency.NOW, about="archive", text=text, page="ArchiveRefused")
    for failure in failures:
        text = f"{failure.periods:,} {failure.unit} cannot be archived and stay in the database; the last: {failure.why}"
        yield Trouble(urgency=Urgency.HUMAN, about="archive", text=text, page="ArchiveRefused")


def _promises(sample: Sample) -> Iterator[Trouble]:
    for promise in sample.promises:
        if promise.missing:
            what = "acknowledged messages are nowhere" if promise.promise == "settled" else "notifications that are due are nowhere"
            yield Trouble(urgency=Urgency.NOW, about="promises", text=f"{promise.missing:,} {what}", page="PromiseBroken")


def _pushes(sample: Sample, read_only: str | None) -> Iterator[Trouble]:
    """What carriers are refused now, and why."""
    now = Trouble(urgency=Urgency.NOW, about="pushes", text="", page="AckAvailability")
    if read_only is not None:
        yield replace(now, text=f"the database takes no writes ({read_only}): no push is acknowledged, and nothing is processed")
    pushes = last_minute(sample.running)
    refused = {code: count for code, count in pushes.refused.items() if code not in _OF_THE_SENDER}
    missed = sum(refused.values())
    if missed and missed / (missed + pushes.acknowledged) > UNACKNOWLEDGED_SHARE_MAX:
        percent = 100 * missed / (missed + pushes.acknowledged)
        shown = f"{percent:.0f}" if percent >= 1 else f"{percent:.2g}"
        causes = "; ".join(
            f"{count:,} {code}{f' ({CAUSES[code]})' if code in CAUSES else ''}"
            for code, count in sorted(refused.items(), key=lambda item: -item[1])
        )
        yield replace(now, text=f"{shown} % of the pushes of the last minute were not acknowledged: {causes}")
    reports = [process.ingest for process in sample.running if process.ingest is not None and not process.is_silent]
    full = [report for report in reports if report.is_disk_full]
    if full:
        free, bound = min(report.disk_free_bytes or 0 for report in full), max(report.disk_free_bytes_min for report in full)
        text = f"the database's disk has {free / 1e9:.2f} GB free; below {bound / 1e9:.2f} GB every push is refused (storage_low)"
        yield replace(now, text=text, page="DiskFilling")


def _silent(sample: Sample) -> Iterator[Trouble]:
    """Processes that missed their heartbeats, each while others of its role may go on."""
    running = dict(sample.processes)
    for process in (each for each in sample.running if each.is_silent):
        seen = f"{process.role} on {process.host} (process {process.pid}) was last heard of {duration(process.seen_seconds_ago)} ago"
        trouble = Trouble(urgency=Urgency.NOTE, about="processes", text=f"{seen}, and was started again", page="RoleDown")
        if process.is_replaced:
            yield trouble
        elif process.role in _TAKES_WEBHOOKS:
            text = f"{seen}: frozen, killed or cut off; what is sent to it is not answered"
            yield replace(trouble, urgency=Urgency.NOW, text=text)
        elif running.get(process.role):
            yield replace(trouble, text=f"{seen}: frozen, killed or cut off; others of its role go on")


def _roles(sample: Sample) -> Iterator[Trouble]:
    yield from _silent(sample)
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


async def _sealing(connection: AsyncConnection[Any], sample: Sample) -> list[Trouble]:
    """Who or what holds it up: a leader that is stopped, or clocks that contradict each other."""
    found = []
    if sample.oldest_unsealed_seconds > UNSEALED_SECONDS_MAX and (lead := await silent_lead(connection)) is not None:
        found.append(Trouble(urgency=Urgency.NOW, about="sealer", text=lead.sentence, page="SealerStopped"))
    try:
        await ClockCheck().check(connection)
    except ClockError as error:
        text = f"feed, stream and proofs wait: {error}"
        found.append(Trouble(urgency=Urgency.NOW, about="clock", text=text, page="ClocksDiffer"))
    return found


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


def _unsent(unsent: Sequence[Unsent]) -> Iterator[Trouble]:
    for state, group in groupby(unsent, key=lambda one: one.state):
        worst, *others = group
        if worst.alike > _NAMED_MAX:
            text = f"{worst.alike:,} are {state}; the first of them: {worst.sentence}"
            yield replace(_SUBSCRIBER, about="subscriptions", text=text, subscription_state=state)
        else:
            yield from (_about(one.subscription_id, one.sentence) for one in (worst, *others))


def _slow(late: Sequence[SubscriptionGauges], unsent_ids: Collection[str]) -> Iterator[Trouble]:
    slow = sorted((each for each in late if each.subscription_id not in unsent_ids), key=lambda each: -each.oldest_ready_seconds)
    shown = slow if len(slow) <= _NAMED_MAX else slow[:1]
    for each in shown:
        text = f"{each.waiting:,} notifications wait, the first for {duration(each.oldest_ready_seconds)}: it is slow, or limited"
        yield _about(each.subscription_id, text)
    if len(slow) > len(shown):
        text = f"so do {len(slow) - len(shown)} more at least: they are slow, or limited"
        yield replace(_SUBSCRIBER, about="subscriptions", text=text)


def _about(subscription_id: str, text: str) -> Trouble:
    return replace(_SUBSCRIBER, about=f"subscription {subscription_id[:8]}", text=text, subscription_id=subscription_id)
