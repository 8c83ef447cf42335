"""One story: the service under steady load, something that goes wrong again and again, and
the reckoning at the end.
"""

import asyncio
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final

from psycopg import AsyncConnection

from statesvc.database.keyring_store import load_keyring, parse_master_keys
from tests.acceptance.processes import MASTER_KEY, Service, until_false
from tests.bench.report import percentile
from tests.soak.carriers import Carriers
from tests.soak.crew import Crew, Member, Post
from tests.soak.ledger import Ledger, promises
from tests.soak.priority import outrank_neighbours
from tests.soak.subscriber import Subscriber
from tests.soak.traffic import Told, traffic
from tests.soak.verdict import Verdict, judge
from tests.soak.watch import LOOK_SECONDS, RECOVERED_SECONDS, Disturbance, Watch
from tests.world import postgres

SECONDS: Final = float(os.environ.get("STATESVC_SOAK_SECONDS", "600"))
RATE: Final = float(os.environ.get("STATESVC_SOAK_RATE", "150"))
SEED: Final = int(os.environ.get("STATESVC_SOAK_SEED", "0"))
DRAIN_SECONDS: Final = 240.0
"""For the last ACKs and the backlog, after the last disturbance; above the longest lease and two of
the notifier's pauses.
"""
SHORT_LEASE: Final = {
    "STATESVC_WORKER_LEASE_SECONDS": "6",
    "STATESVC_WORKER_STATEMENT_SECONDS": "4",
    "STATESVC_WORKER_LOCK_SECONDS": "2",
    "STATESVC_WORKER_IDLE_IN_TRANSACTION_SECONDS": "3",
    "STATESVC_NOTIFIER_LEASE_SECONDS": "16",
}
CREW: Final = (
    Post(role="api"),
    *[Post(role="worker")] * 2,
    *[Post(role="notifier")] * 2,
    Post(role="sealer"),
)
_SETTINGS: Final = {
    "STATESVC_WEBHOOK_SECRET_UPS": None,
    "STATESVC_LOG_LEVEL": "warning",
    "STATESVC_LOG_FORMAT": "json",
}
_LEFT: Final = """
SELECT EXISTS (SELECT FROM statesvc.inbox) OR EXISTS (SELECT FROM statesvc.outbox) OR EXISTS (SELECT FROM statesvc.unsealed)
"""

_LEFT_OVER: Final = """
SELECT 'inbox', carrier_id, token IS NOT NULL, available_at - statesvc.clock(), attempts, retries, last_error FROM statesvc.inbox
UNION ALL
SELECT 'outbox', '', token IS NOT NULL, available_at - statesvc.clock(), attempts, 0, '' FROM statesvc.outbox
UNION ALL
SELECT 'unsealed', '', false, recorded_from - statesvc.clock(), 0, 0, '' FROM statesvc.unsealed
"""


@dataclass(slots=True, kw_only=True)
class Story:
    """Parts of a story that a disturbance may lay hands on.

    `server`: the addresses that no proxy stands before.
    """

    name: str
    server: postgres.Server
    service: Service
    crew: Crew
    carriers: Carriers
    subscriber: Subscriber
    ledger: Ledger
    watch: Watch
    rng: random.Random = field(default_factory=lambda: random.Random(SEED))
    begun: float = field(default_factory=time.monotonic)
    notes: list[str] = field(default_factory=list)
    at_end: list[Callable[["Story"], Awaitable[None]]] = field(default_factory=list)
    """Called once all has come to rest."""

    async def rounds(self, *, shortest: float, longest: float) -> AsyncIterator[int]:
        """Count the disturbances until the time is over, after pauses of so many seconds; scaled
        down where the story is short.
        """
        scale = min(1.0, max(0.5, SECONDS / 120))
        number = 0
        while True:
            await asyncio.sleep(self.rng.uniform(shortest, longest) * scale)
            if number > 0 and time.monotonic() - self.begun >= SECONDS:
                return
            yield number
            number += 1

    @contextmanager
    def disturbance(self, what: str) -> Iterator[None]:
        """Disturb; the recovery is counted from its end."""
        record = Disturbance(what, time.monotonic())
        self.watch.disturbances.append(record)
        try:
            yield
        finally:
            record.ended = time.monotonic()

    async def caught_up(self, *, within_seconds: float) -> None:
        """Wait until what the last disturbance left is settled, not longer than so many seconds."""
        ended = self.watch.disturbances[-1].ended
        # a spool is not in sight: it is drained from now on
        await asyncio.sleep(5)
        while time.monotonic() < ended + within_seconds:
            look = self.watch.looks[-1]
            if look.waiting is not None and look.waiting < RECOVERED_SECONDS:
                return
            await asyncio.sleep(LOOK_SECONDS)

    def one_of(self, *roles: str) -> Member:
        """Return a living process of these roles, by chance."""
        return self.crew.some(self.rng, *roles)

    async def execute(self, query: str, *parameters: object) -> list[tuple[object, ...]]:
        """Execute a query as superuser, past any proxy."""
        async with await AsyncConnection.connect(
            self.server.superuser_dsn, autocommit=True
        ) as connection:
            cursor = await connection.execute(query.encode(), parameters or None)
            return await cursor.fetchall() if cursor.description else []

    async def _is_left(self) -> bool:
        return bool((await self.execute(_LEFT))[0][0])

    async def end(self, carrying: asyncio.Task[None]) -> Verdict:
        """End the load, and let everything come to rest."""
        self.carriers.stop()
        drained = time.monotonic()
        async with asyncio.timeout(DRAIN_SECONDS):
            await carrying
        left: list[tuple[object, ...]] = []
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                await until_false(self._is_left, pause_seconds=0.25)
            self.notes.append(
                f"backlog drained {time.monotonic() - drained:.1f} s after the last new push"
            )
        except TimeoutError:
            left = await self.execute(_LEFT_OVER)
        async with await AsyncConnection.connect(
            self.server.owner_dsn, autocommit=True
        ) as connection:
            keyring = await load_keyring(connection, parse_master_keys(MASTER_KEY))
        with self.ledger.path.open() as lines:
            promised = promises(lines)
        verdict = await judge(self.server.owner_dsn, keyring, promised, self.subscriber)
        verdict.must("not drained", left)
        verdict.must(
            "answers that no carrier should get",
            {s: c for s, c in self.carriers.sent.answers.items() if s not in {0, 200, 503}},
        )
        self.notes.append(
            f"{promised.acks:,} ACKs for {len(promised.messages):,} bodies, {promised.duplicates:,}"
            " of them said `duplicate`"
        )
        for call in self.at_end:
            await call(self)
        return verdict


@asynccontextmanager
async def told(
    name: str,
    server: postgres.Server,
    folder: Path,
    *,
    posts: Sequence[Post] = CREW,
    settings: Mapping[str, str] | None = None,
    seen_as: postgres.Server | None = None,
    forks: bool = False,
    tries_once: bool = False,
) -> AsyncIterator[Story]:
    """Set the scene; the block is what goes wrong; then the reckoning, which may fail.

    `seen_as`: how the service reaches the server.

    `forks`: as `Service` has it. `tries_once`: each push is another body, sent once.
    """
    outrank_neighbours()
    dsns = seen_as or server
    # a checkpoint outside the database: the sealer would notice one that went back in time
    told_all = {
        **_SETTINGS,
        "STATESVC_SEALER_CHECKPOINT_FILE": str(folder / "checkpoint"),
        **(settings or {}),
    }
    service = Service(
        service_dsn=dsns.service_dsn,
        owner_dsn=dsns.owner_dsn,
        folder=folder,
        settings=told_all,
        forks=forks,
    )
    ledger, subscriber = Ledger(folder / "ledger.ndjson"), Subscriber()
    async with AsyncExitStack() as stack:
        stack.callback(ledger.close)
        await subscriber.start()
        stack.push_async_callback(subscriber.stop)
        await stack.enter_async_context(service)
        crew = Crew(service, list(posts))
        # before the service ends its processes: of a story that fails they would be started again
        stack.push_async_callback(crew.abandon)
        await crew.start()
        status, answer = await service.post(
            "/v1/subscriptions",
            json.dumps({"url": subscriber.url, "coalesce": False}),
            **{"Content-Type": "application/json"},
        )
        assert status == 201, answer
        subscriber.secret = answer["secret"]
        async with await AsyncConnection.connect(server.owner_dsn, autocommit=True) as connection:
            keyring = await load_keyring(connection, parse_master_keys(MASTER_KEY))
        pushes = traffic(SEED, keyring.carrier_digest)
        carriers = Carriers(
            session=service.session,
            url=lambda: crew.webhook_url,
            ledger=ledger,
            pushes=distinct(pushes) if tries_once else pushes,
            rate=RATE,
            tries_once=tries_once,
        )
        watch = Watch(server.superuser_dsn, lambda: carriers.oldest_unanswered_seconds)
        watching = asyncio.create_task(watch.run(), name="watch")
        carrying = asyncio.create_task(carriers.run(), name="carriers")
        stack.push_async_callback(_cancel, watching, carrying)
        story = Story(
            name=name,
            server=server,
            service=service,
            crew=crew,
            carriers=carriers,
            subscriber=subscriber,
            ledger=ledger,
            watch=watch,
        )
        yield story
        verdict = await story.end(carrying)
        verdict.must("processes that ended by themselves", crew.deaths)
        verdict.must(
            "processes that did not go when told to",
            [code for code in await crew.stop() if code != 0],
        )
        _report(story, verdict)
        assert not verdict.broken, "\n".join(verdict.broken)


def distinct(pushes: Iterable[Told]) -> Iterator[Told]:
    """Leave out bodies that came before."""
    seen: set[bytes] = set()
    for push in pushes:
        if push.body not in seen:
            seen.add(push.body)
            yield push


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _report(story: Story, verdict: Verdict) -> None:
    sent, looks = story.carriers.sent, story.watch.looks
    recoveries = story.watch.recoveries()
    seconds = sorted(recovery for _, recovery in recoveries)
    acks = sorted(sent.ack_seconds)
    lines = [
        (
            f"{story.name}: {time.monotonic() - story.begun:.0f} s, {RATE:.0f} pushes/s,"
            f" {len(story.watch.disturbances)} disturbances"
        ),
        (
            f"pushes {sent.pushes:,}, sent again {sent.retries:,}, answers"
            f" {dict(sorted(sent.answers.items()))} (0: none)"
        ),
        (
            f"ACK, from due: p50 {percentile(acks, 0.5) * 1e3:.0f} ms, p99"
            f" {percentile(acks, 0.99) * 1e3:.0f} ms, longest {acks[-1]:.1f} s"
        ),
        (
            "longest without any ACK"
            f" {max(after - before for before, after in pairwise(sent.acked_at)):.1f} s"
        ),
        (
            f"settled {verdict.messages:,}, dead letters {verdict.dead_letters:,}, events"
            f" {verdict.events:,}, log entries {verdict.entries:,}"
        ),
        (
            f"notifications {verdict.notifications:,} ({verdict.noticed:,} of what did not happen),"
            f" deliveries {verdict.deliveries:,}"
        ),
        (
            f"longest from received to settled {verdict.lag_seconds_max:.1f} s; largest backlog"
            f" {max(look.backlog for look in looks):,}"
        ),
        f"process starts {story.crew.starts}; errors logged {_errors(story.service) or 'none'}",
        *story.notes,
    ]
    if seconds:
        slowest = max(recoveries, key=lambda recovery: recovery[1])
        lines.append(
            f"recovery: median {median(seconds):.1f} s, longest {seconds[-1]:.1f} s"
            f" ({slowest[0].what}); {len(seconds)} of {len(story.watch.disturbances)} before the"
            " next disturbance"
        )
    lines += [f"BROKEN {broken}" for broken in verdict.broken]
    sys.stdout.write("\n" + "\n  ".join(lines) + "\n")
    sys.stdout.flush()


def _errors(service: Service) -> dict[str, int]:
    """Return what the processes logged as errors, by name."""
    found: Counter[str] = Counter()
    for role in service.roles:
        for line in role.log.read_text(errors="replace").splitlines():
            try:
                said = json.loads(line)
            except ValueError:
                found["(no JSON)"] += 1
                continue
            if said.get("level") in {"error", "critical"}:
                found[str(said.get("event"))] += 1
    return dict(found)
