"""A migration under way: tasks of a real Celery on a real RabbitMQ, with whatever
may go wrong meanwhile.
"""

import asyncio
import os
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from celery.signals import before_task_publish
from psycopg import AsyncConnection, OperationalError

from events.crypto.keyring import body_context
from events.crypto.sealing import unsalted
from statesvc.database.keyring_store import load_keyring, parse_master_keys
from tests.world.celery_fleet import QUORUM_NAMES, TASK, declare_delays, make_app
from tests.world.shell import MASTER_KEY

CLASSIC: Final = ("fast", "slow")
ALL_QUEUES: Final = tuple(part for name in (*CLASSIC, *QUORUM_NAMES) for part in ("--queue", name))
MAPPING: Final = f'[[rules]]\ntask = "{TASK}"\ncarrier = "ups"\nbody = "args.0"\n'
_QUERY: Final = """SELECT q.message_id, q.sealed_key, b.sealed, b.headers ->> 'celery-task-id', q.available_at, q.received_at, q.carrier_id
    FROM statesvc.inbox q JOIN statesvc.body b USING (message_id, received_at)"""


@dataclass(frozen=True, slots=True)
class Sent:
    """Task that a producer sent; `eta` as Celery wrote it."""

    body: bytes
    eta: datetime | None


@dataclass(frozen=True, slots=True)
class Arrived:
    """A message in the inbox, opened."""

    task_id: str
    body: bytes
    available_at: datetime
    received_at: datetime
    carrier_id: str

    def is_as_sent(self, sent: Sent) -> bool:
        """Return whether it has the same bytes, due at the ETA, or at once where there is
        none or it has passed.
        """
        due = self.received_at if sent.eta is None else max(sent.eta, self.received_at)
        return (self.body, self.available_at) == (sent.body, due)


def body(number: int) -> str:
    """Build a carrier's message, one of its own for each number."""
    return f'{{"trackingNumber": "1Z{number:016d}", "note": "{"é" * (number % 5)}"}}'


def produce(
    broker: str, count: int, *, native: bool = True, first: int = 0, **always: Any
) -> dict[str, Sent]:
    """Produce by id: immediate, by countdown, days ahead, past, by priority, in two queues.

    With `native` a sixth by native delayed delivery.
    """
    now = datetime.now(UTC)
    kinds: tuple[dict[str, Any], ...] = (
        {},
        {"countdown": 7200},
        {"eta": now + timedelta(days=9, microseconds=123456)},
        {"eta": now - timedelta(hours=1)},
        {"priority": 7},
        {"countdown": 5 * 86400 + 11},
    )
    etas: dict[str, datetime | None] = {}

    def note(headers: dict[str, Any], body: Any, **_more: Any) -> None:
        # protocol 1 has all in the body
        stated = headers.get("eta") if headers.get("id") else body.get("eta")
        etas[headers.get("id") or body["id"]] = _instant(stated)

    classic = make_app(broker)
    quorum = make_app(broker, quorum=True, names=QUORUM_NAMES) if native else classic
    if native:
        declare_delays(broker, *QUORUM_NAMES)
    before_task_publish.connect(note)
    try:
        sent: dict[str, Sent] = {}
        with (
            classic.producer_pool.acquire(block=True) as fast,
            quorum.producer_pool.acquire(block=True) as slow,
        ):
            for number in range(first, first + count):
                is_native = native and number % len(kinds) == len(kinds) - 1
                app, producer, names = (
                    (quorum, slow, QUORUM_NAMES) if is_native else (classic, fast, CLASSIC)
                )
                app.conf.task_protocol = 1 if not is_native and number % 10 == 3 else 2
                given = always or kinds[number % len(kinds)]
                task_id = (
                    app.tasks[TASK]
                    .apply_async(
                        [body(number)], queue=names[number % 2], producer=producer, **given
                    )
                    .id
                )
                sent[task_id] = Sent(body(number).encode(), etas[task_id])
        return sent
    finally:
        before_task_publish.disconnect(note)


def _instant(text: str | None) -> datetime | None:
    found = None if text is None else datetime.fromisoformat(text)
    return found if found is None or found.tzinfo else found.replace(tzinfo=UTC)


async def read_inbox(dsn: str) -> list[Arrived]:
    """Return what waits, opened."""
    async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
        keyring = await load_keyring(connection, parse_master_keys(MASTER_KEY))
        found = []
        async for message_id, sealed_key, sealed, task_id, *rest in connection.cursor().stream(
            _QUERY
        ):
            context = body_context(message_id)
            opened = unsalted(keyring.inbox.unwrap(sealed_key, context).open(sealed, context))
            found.append(Arrived(task_id or "", opened, *rest))
        return found


async def count_inbox(dsn: str) -> int:
    """Count what waits; 0 while the database does not answer."""
    try:
        async with await AsyncConnection.connect(
            dsn, autocommit=True, connect_timeout=2
        ) as connection:
            row = await (await connection.execute("SELECT count(*) FROM statesvc.inbox")).fetchone()
    except OperationalError:
        return 0
    return 0 if row is None else int(row[0])


@dataclass(frozen=True)
class Transfer:
    """The command, in a process of its own."""

    dsn: str
    folder: Path
    source: str

    @property
    def backup(self) -> Path:
        """Folder of everything that was taken."""
        return self.folder / "backup"

    async def start(self, *more: str, mapping: str = MAPPING) -> Process:
        """Start a transfer that runs until the source is empty."""
        (self.folder / "mapping.toml").write_text(mapping)
        given = (
            "--from",
            self.source,
            "--mapping",
            str(self.folder / "mapping.toml"),
            "--until-empty",
        )
        return await self._start(*given, *more)

    async def start_back(self) -> Process:
        """Start to return what was not processed."""
        return await self._start("--to", self.source)

    async def _start(self, *given: str) -> Process:
        return await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-m",
                "statesvc",
                "shovel",
                "--backup",
                str(self.backup),
                "--json",
                *given,
            ),
            env=os.environ | {"DATABASE_URL": self.dsn, "STATESVC_MASTER_KEY": MASTER_KEY},
            stdin=DEVNULL,
            stdout=PIPE,
            start_new_session=True,
        )

    async def finish(self, *more: str) -> str:
        """Run it to its end."""
        return await ended(await self.start(*more))

    async def run_with_kills(
        self, total: int, kills: int, *more: str, between: Sequence[Any] = ()
    ) -> None:
        """Run with SIGKILL, and a new start, again and again on the way.

        `between`: done after the first kills.
        """
        done = list(between)
        running = await self.start(*more)
        for number in range(1, kills + 1):
            while running.returncode is None and await count_inbox(self.dsn) < total * number // (  # noqa: ASYNC110
                kills + 2
            ):
                await asyncio.sleep(0.02)
            with suppress(ProcessLookupError):
                running.kill()
            await running.wait()
            running = await self.start(*more)
            if done:
                await done.pop(0)()
        await ended(running)


async def ended(process: Process) -> str:
    """Return what it printed; fail where it ended otherwise than with 0."""
    printed, _ = await process.communicate()
    assert process.returncode == 0, printed.decode()
    return printed.decode()


@asynccontextmanager
async def timed(what: str, count: int) -> AsyncIterator[None]:
    """Print how fast it went."""
    began = time.monotonic()
    yield
    seconds = time.monotonic() - began
    say(f"{what}: {count:,} in {seconds:.1f} s, {count / seconds:,.0f}/s")


def say(text: str) -> None:
    """Print for the report of a soak."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def assert_all_arrived(sent: dict[str, Sent], arrived: Sequence[Arrived]) -> None:
    """Check that each arrived once, with its bytes, at its ETA."""
    by_id = {one.task_id: one for one in arrived}
    assert len(arrived) == len(by_id) == len(sent)
    assert by_id.keys() == sent.keys()
    assert [task_id for task_id, one in by_id.items() if not one.is_as_sent(sent[task_id])] == []
