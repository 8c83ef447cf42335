"""Status of the service: findings, worst first, each with its page of the runbook.

The alerts take their thresholds from here (deploy/prometheus/rules.yml), so the person on call
finds the reason here.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from itertools import chain
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from statesvc.api.dead_letter_words import cause_words
from statesvc.api.process_checks import process_findings
from statesvc.api.status_facts import Facts, HourOfPushes, read_facts
from statesvc.api.subscription_checks import slow_findings, unsent_findings
from statesvc.background.duration import duration
from statesvc.health.database_sample import UNSEALED_SECONDS_MAX, Sample
from statesvc.health.finding import Finding, Urgency, worst_first
from statesvc.health.running_processes import last_minute
from statesvc.http.problem import PROBLEM_KINDS, Code
from statesvc.queue.depths import QueueDepths
from statesvc.reading.rollout_store import ALL
from statesvc.seams import VARIABLE, is_on, parts, sentence
from statesvc.spool.spool_state import spool_findings

READY_SECONDS_MAX: Final = 60.0
HELD_SECONDS_MAX: Final = 4 * 3600.0
TRANSACTION_SECONDS_MAX: Final = 900.0
NOTIFY_QUEUE_SHARE_MAX: Final = 0.5
NOTIFY_QUEUE_FULL: Final = 0.95
HORIZON_SECONDS_MIN: Final = 4 * 86_400.0
_NOTHING_STORED: Final = "AckAvailability"
# Share of the pushes of a minute that the objective leaves.
UNACKNOWLEDGED_SHARE_MAX: Final = 0.0005
# Causes why a push was not acknowledged, by code of the problem.
CAUSES: Final[Mapping[str, str]] = {
    Code.STORAGE_LOW.value: "the database's disk is at its bound",
    Code.DATABASE_UNAVAILABLE.value: "the database was away",
    Code.NOT_DURABLE.value: "the database did not store them, or not in time",
    Code.OVERLOADED.value: "too many bodies in memory, or a process that stopped",
    Code.SIGNING_KEYS_UNAVAILABLE.value: "a carrier's published keys could not be fetched",
    Code.INTERNAL_ERROR.value: "a defect; the log has the reason",
}
_OF_THE_SENDER: Final = frozenset(
    code.value
    for code, kind in PROBLEM_KINDS.items()
    if kind.status < HTTPStatus.INTERNAL_SERVER_ERROR
)


class Check(NamedTuple):
    """A check of the running service. `ok_text`: doctor's line without a finding."""

    about: str
    ok_text: str
    find: Callable[[Facts], Iterable[Finding]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStatus:
    """A sample of the service with its findings."""

    sample: Sample
    queue: QueueDepths
    pushes: Mapping[str, HourOfPushes]
    troubles: list[Finding]

    @property
    def needs_human(self) -> bool:
        """True if a human has to act."""
        return any(trouble.urgency is not Urgency.NOTE for trouble in self.troubles)


async def read_status(connection: AsyncConnection[Any]) -> ServiceStatus:
    facts = await read_facts(connection)
    return ServiceStatus(
        sample=facts.sample,
        queue=facts.queue,
        pushes=facts.pushes,
        troubles=worst_first(
            chain(
                (finding for check in checks() for finding in check.find(facts)),
                facts.unread,
            )
        ),
    )


def _storage(facts: Facts) -> Iterator[Finding]:
    yield from facts.storage


def _promises(facts: Facts) -> Iterator[Finding]:
    for promise in facts.sample.promises:
        if promise.missing:
            what = (
                "acknowledged messages are nowhere"
                if promise.promise == "settled"
                else "notifications that are due are nowhere"
            )
            yield Finding(
                urgency=Urgency.NOW,
                about="promises",
                text=f"{promise.missing:,} {what}",
                page="PromiseBroken",
            )


def _pushes(facts: Facts) -> Iterator[Finding]:
    """Report refused pushes by carrier, with the reason."""
    now = Finding(urgency=Urgency.NOW, about="pushes", text="", page=_NOTHING_STORED)
    reports = [
        process.ingest
        for process in facts.sample.running
        if process.ingest is not None and not process.is_silent
    ]
    full = [report for report in reports if report.is_disk_full]
    pushes = last_minute(facts.sample.running)
    refused = {code: count for code, count in pushes.refused.items() if code not in _OF_THE_SENDER}
    missed = sum(refused.values())
    if missed and missed / (missed + pushes.acknowledged) > UNACKNOWLEDGED_SHARE_MAX:
        percent = 100 * missed / (missed + pushes.acknowledged)
        shown = f"{percent:.0f}" if percent >= 1 else f"{percent:.2g}"
        causes = "; ".join(
            f"{count:,} {code}{f' ({CAUSES[code]})' if code in CAUSES else ''}"
            for code, count in sorted(refused.items(), key=lambda item: -item[1])
        )
        text = f"{shown} % of the pushes of the last minute were not acknowledged: {causes}"
        yield replace(
            now, text=text, cause="DiskFilling" if full and Code.STORAGE_LOW in refused else None
        )
    if full:
        free, bound = (
            min(report.disk_free_bytes or 0 for report in full),
            max(report.disk_free_bytes_min for report in full),
        )
        text = (
            f"the database's disk has {free / 1e9:.2f} GB free; below {bound / 1e9:.2f} GB every"
            " push is refused (storage_low)"
        )
        yield replace(now, text=text, page="DiskFilling")


def _sealing(facts: Facts) -> Iterator[Finding]:
    """Report that sealing stopped: no sealer, a stopped leader, or clocks that disagree."""
    stopped = Finding(
        urgency=Urgency.NOW,
        about="sealer",
        text="",
        page="SealerStopped",
        cause=facts.without("sealer"),
    )
    seconds = facts.sample.oldest_unsealed_seconds
    if seconds > UNSEALED_SECONDS_MAX:
        yield replace(
            stopped,
            text=(
                f"the oldest entry has waited {duration(seconds)} to be sealed: feed, stream and"
                " proofs stop there"
            ),
        )
    if facts.lead is not None:
        yield replace(stopped, text=facts.lead)
    if facts.clock_fault is not None:
        text = f"feed, stream and proofs wait: {facts.clock_fault}"
        yield Finding(urgency=Urgency.NOW, about="clock", text=text, page="ClocksDiffer")


def _database(facts: Facts) -> Iterator[Finding]:
    sample = facts.sample
    horizon = sample.partition_horizon_seconds
    if horizon is not None and horizon < HORIZON_SECONDS_MIN:
        text = f"in {duration(horizon)} a table has no partition left, and every append stops"
        yield Finding(urgency=Urgency.NOW, about="partitions", text=text, page="PartitionHorizon")
    for fault in facts.trigger_faults:
        yield Finding(urgency=Urgency.NOW, about="database", text=fault, page="CopiedDatabase")
    for name, table in facts.invalid_indexes:
        text = (
            f"index {name} of {table} is invalid, as a REINDEX or CREATE INDEX CONCURRENTLY leaves"
            f" it that failed: each write pays for it. DROP INDEX CONCURRENTLY {name} if it ends in"
            f" _ccnew or _ccold, else REINDEX INDEX CONCURRENTLY {name}"
        )
        yield Finding(urgency=Urgency.HUMAN, about="database", text=text)
    if sample.oldest_transaction_seconds > TRANSACTION_SECONDS_MAX:
        text = (
            f"a transaction has been open for {duration(sample.oldest_transaction_seconds)}: dead"
            " rows pile up"
        )
        yield Finding(urgency=Urgency.HUMAN, about="database", text=text, page="OldTransaction")


def _notify_queue(facts: Facts) -> Iterator[Finding]:
    """Name the session that keeps the server from removing notifications."""
    queue = facts.sample.notify_queue
    if queue.share < NOTIFY_QUEUE_SHARE_MAX:
        return
    if queue.pid is None:
        holder = (
            "no session that the service's role may see (pg_read_all_stats) has an old transaction"
        )
    else:
        program = f" ({queue.application})" if queue.application else ""
        holder = (
            f"process {queue.pid}{program} of {queue.user} in database {queue.database} has had a"
            f" transaction open for {duration(queue.seconds or 0)} ({queue.state}): most likely it"
            " listens and holds the queue"
        )
    yield Finding(
        urgency=Urgency.NOW if queue.share >= NOTIFY_QUEUE_FULL else Urgency.HUMAN,
        about="database",
        text=(
            f"the NOTIFY queue of the server is {100 * queue.share:.0f} % full; full, it makes each"
            f" wake-up half a minute late; {holder}"
        ),
        page="NotifyQueue",
    )


def _carriers(facts: Facts) -> Iterator[Finding]:
    for carrier_id, lane in facts.queue["carriers"].items():
        oldest = lane["oldest_ready_seconds"]
        if oldest is not None and oldest > READY_SECONDS_MAX:
            text = (
                f"{_waiting(lane['ready'])}, the first for {duration(oldest)}; the promise is 2"
                " minutes"
            )
            yield Finding(
                urgency=Urgency.NOW,
                about=carrier_id,
                text=text,
                page="Lag",
                cause=facts.without("worker"),
            )
    for carrier_id, seconds in facts.silent_carriers.items():
        text = f"pushed nothing for {duration(seconds)}, and plenty at this time yesterday"
        yield Finding(urgency=Urgency.HUMAN, about=carrier_id, text=text, page="CarrierSilent")


def _waiting(messages: int) -> str:
    return "1 message waits" if messages == 1 else f"{messages:,} messages wait"


def _holds(facts: Facts) -> Iterator[Finding]:
    """Name each active kill switch, with its operator and reason."""
    for hold in facts.holds:
        lanes = [
            lane for name, lane in facts.queue["carriers"].items() if hold.carrier_id in {ALL, name}
        ]
        oldest = max((lane["oldest_held_seconds"] or 0 for lane in lanes), default=0.0)
        waiting = sum(lane["held"] for lane in lanes)
        kept = (
            f"{_waiting(waiting)}, the first for {duration(oldest)}"
            if waiting
            else "no message waits"
        )
        text = (
            f"on hold for {duration(hold.seconds)}, by"
            f" {hold.by}{f': {hold.why}' if hold.why else ''}; {kept}"
        )
        urgency = Urgency.HUMAN if oldest > HELD_SECONDS_MAX else Urgency.NOTE
        yield Finding(
            urgency=urgency,
            about="all carriers" if hold.carrier_id == ALL else hold.carrier_id,
            text=text,
            page="CarrierHeld",
        )


def _readings(facts: Facts) -> Iterator[Finding]:
    """Name carriers with a rollout that no worker follows."""
    for lacking in facts.lacking:
        yield Finding(
            urgency=Urgency.HUMAN,
            about=lacking.carrier_id,
            text=lacking.sentence,
            page="WorkersOutdated",
        )
    for left in facts.left:
        urgency = Urgency.NOW if left.is_stuck else Urgency.HUMAN
        yield Finding(urgency=urgency, about=left.carrier_id, text=left.sentence, page="Lag")


def _dead_letters(facts: Facts) -> Iterator[Finding]:
    for kind, cause, count in sorted(facts.sample.dead_letters, key=lambda row: -row[2]):
        # the page finds what to do by the cause as the API has it
        text = f"{count:,} dead letter{'' if count == 1 else 's'}: {cause_words(cause)} ({cause})"
        page = "UnknownCodes" if kind == "code" else "DeadLettersGrow"
        yield Finding(urgency=Urgency.HUMAN, about="dead letters", text=text, page=page)


def _subscriptions(facts: Facts) -> Iterator[Finding]:
    yield from unsent_findings(facts.unsent)
    unsent_ids = {one.subscription_id for one in facts.unsent}
    yield from slow_findings(facts.late_subscriptions, unsent_ids, cause=facts.without("notifier"))


def _addons(facts: Facts) -> Iterator[Finding]:
    if any(facts.archived) and not is_on("archive"):
        text = (
            f"{facts.archived}: {sentence('archive', 'to read them, and to delete what is due,')}"
        )
        yield Finding(urgency=Urgency.HUMAN, about="add-ons", text=text)
    roles: defaultdict[str, set[str]] = defaultdict(set)
    for process in facts.sample.running:
        if process.addons is not None and not process.is_silent:
            names = ",".join(sorted(process.addons)) or "none"
            roles[names].add(f"{process.role} on {process.host}")
    if len(roles) > 1:
        sets = "; ".join(f"{', '.join(sorted(roles[names]))}: {names}" for names in sorted(roles))
        text = f"{VARIABLE} differs between processes, set it alike for all of them: {sets}"
        yield Finding(urgency=Urgency.HUMAN, about="add-ons", text=text)


# The cheap checks, that `GET /v1/status` makes; doctor makes them too.
CHECKS: Final = (
    Check("storage", "takes what is written", _storage),
    Check("pushes", "are acknowledged", _pushes),
    Check(
        "spool",
        "holds no message that the database could take",
        lambda facts: spool_findings(facts.spools),
    ),
    Check(
        "promises", "nothing acknowledged is missing, and no notification that was due", _promises
    ),
    Check("sealing", "keeps up, and the clocks agree", _sealing),
    Check(
        "database",
        "has partitions for days to come, valid indexes, and no old transaction",
        _database,
    ),
    Check("NOTIFY queue", "has room", _notify_queue),
    Check("add-ons", "all that the data needs are on, and alike in every process", _addons),
    Check("carriers", "no message waits for long, and none has fallen silent", _carriers),
    Check("kill switch", "is off for all", _holds),
    Check("processes", "every role runs", process_findings),
    Check("readers", "each carrier is read as its rollout says", _readings),
    Check("dead letters", "none", _dead_letters),
    Check("subscriptions", "each takes what it is sent", _subscriptions),
)


def checks() -> tuple[Check, ...]:
    """Return the checks of the core and of the add-ons that are on."""
    return (
        *CHECKS,
        *(
            Check(one.about, one.ok_text, partial(_of_addon, one.about))
            for one in parts("findings")
        ),
    )


def _of_addon(about: str, facts: Facts) -> Sequence[Finding]:
    return facts.of_addons[about]
