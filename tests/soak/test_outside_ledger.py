"""Everything at once, under a ledger of its own: traffic of seven carriers, kills of every role and
of PostgreSQL, operators at work.

What the ledger expects, and how it checks it, is in `tests/soak/outside/`, which uses nothing of
the service's code: HTTP and the command line alone. This file sets the scene.
"""

import ast
import asyncio
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path

import pytest

from tests.acceptance.processes import Service
from tests.bench.report import percentile
from tests.soak.crew import Crew, Post
from tests.soak.outside.aftermath import DAYS, months_later
from tests.soak.outside.client import Client, CommandLine
from tests.soak.outside.log import check_heads, check_log, read_feed
from tests.soak.outside.parcels import parcels
from tests.soak.outside.receiver import Receiver
from tests.soak.outside.reckoning import Reckoning, mapping_of
from tests.soak.outside.record import Record
from tests.soak.outside.traffic import Traffic
from tests.soak.server import SoakServer
from tests.soak.story import CREW, SECONDS, SEED, SHORT_LEASE

RATE = float(os.environ.get("STATESVC_SOAK_RATE", "40"))
OUTSIDE = Path(__file__).parent / "outside"
POSTS = (Post(role="ingress"), *CREW)
VICTIMS = (
    *("worker", "api", "notifier", "sealer", "ingress", "PostgreSQL: immediate"),
    *("worker", "notifier", "sealer", "ingress", "worker", "PostgreSQL: SIGKILL"),
)
STRANGE = (("ups", ("X", "ZQ7")), ("fedex", ("Q9",)), ("usps", ("ZQ",)), ("dhl_express", ("Z9",)))
REPAIRS = (
    ("rebuild", "shipment"),
    ("rebuild", "shipment", "--compare"),
    ("rebuild", "shipment", "--finish"),
    ("dead-letters", "replay", "--kind", "code", "--why", "mapped"),
    ("renormalize", "--carrier", "ups", "--why", "mapped"),
    (
        "dead-letters",
        "replay",
        "--carrier",
        "usps",
        "--cause",
        "unreadable",
    ),
    ("renormalize", "--carrier", "fedex", "--why", "mapped"),
    (
        "dead-letters",
        "replay",
        "--carrier",
        "fedex",
        "--cause",
        "too_complex",
    ),
    ("renormalize", "--carrier", "dhl_express", "--why", "mapped"),
)


def test_the_outside_ledger_uses_nothing_of_the_service() -> None:
    imported = {
        name
        for path in OUTSIDE.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [])
        + ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [])
    }
    assert {
        name
        for name in imported
        if name.split(".")[0] in {"statesvc", "events", "projections", "migrations"}
    } == set()
    assert {
        name
        for name in imported
        if name.startswith("tests.") and not name.startswith("tests.soak.outside")
    } == set()


@pytest.mark.soak
async def test_a_ledger_of_its_own_finds_every_promise_fulfilled(
    own_server: SoakServer, tmp_path: Path
) -> None:
    archive = tmp_path / "archive"
    settings = {
        **SHORT_LEASE,
        "STATESVC_WEBHOOK_SECRET_UPS": None,
        "STATESVC_LOG_LEVEL": "warning",
        "STATESVC_SEALER_CHECKPOINT_FILE": str(tmp_path / "checkpoint"),
        "STATESVC_ARCHIVE_DIR": str(archive),
    }
    dsns = own_server.dsns
    service = Service(
        service_dsn=dsns.service_dsn, owner_dsn=dsns.owner_dsn, folder=tmp_path, settings=settings
    )
    record, rng = Record(tmp_path / "ledger.sqlite"), random.Random(SEED)
    receiver = Receiver(record, random.Random(SEED))
    await receiver.start()
    async with service:
        crew = Crew(service, list(POSTS))
        await crew.start()
        shell = CommandLine(service.environment, Path(__file__).parents[2], rng, impatience=0.3)
        scene = Scene(
            service=service,
            crew=crew,
            shell=shell,
            record=record,
            receiver=receiver,
            server=own_server,
            rng=rng,
        )
        try:
            broken = await scene.play(archive)
        finally:
            await crew.abandon()
            await receiver.stop()
            record.close()
    assert not broken, "\n".join(broken)


class Scene:
    """One run from the first push to the verdict."""

    def __init__(
        self,
        *,
        service: Service,
        crew: Crew,
        shell: CommandLine,
        record: Record,
        receiver: Receiver,
        server: SoakServer,
        rng: random.Random,
    ) -> None:
        self.service, self.crew, self.shell, self.record, self.receiver = (
            service,
            crew,
            shell,
            record,
            receiver,
        )
        self.server, self.rng = server, rng
        self.kills: Counter[str] = Counter()
        self.begun = time.monotonic()
        self.broken: list[str] = []
        self.sound_entries = 0
        self.erasing = asyncio.Lock()

    @property
    def is_over(self) -> bool:
        return time.monotonic() - self.begun >= SECONDS

    async def play(self, archive: Path) -> list[str]:
        key = (await self.shell.until_done("keys", "log")).split()[-1]
        client = await self._client()
        traffic = Traffic(
            client=client,
            record=self.record,
            plan=parcels(self.rng, datetime.now(UTC)),
            rate=RATE,
            rng=random.Random(SEED + 1),
            erase=self._erase,
        )
        async with asyncio.TaskGroup() as group:
            carrying = group.create_task(traffic.run(), name="traffic")
            heads = group.create_task(self._store_heads(client), name="heads")
            operating = group.create_task(self._operate(), name="operators")
            await self._disturb(operating)
            traffic.stop()
            await carrying
            heads.cancel()
        await self._drained(client)
        await self._teach_and_replay()
        await self._drained(client)
        log = check_log(await read_feed(client))
        _, note = await client.get("/v1/checkpoint")
        self.record.store_head(note)
        size = check_heads(
            log, [head for (head,) in self.record.rows("SELECT note FROM head ORDER BY rowid")], key
        )
        reckoning = Reckoning(client, self.record, log)
        await reckoning.run()
        self._expect("the newest head does not cover the log", size < len(log.entries))
        await self._verdicts(key, note)
        self._expect("notifications with a wrong signature", self.receiver.forged)
        for what, wrong in [*log.broken.items(), *reckoning.broken.items()]:
            self._expect(what, wrong)
        self._expect("answers that no carrier should get", traffic.wrong)
        proper = {0, 200, 404, 409, 429, 503}
        self._expect(
            "answers that no reader should get",
            {s: n for s, n in client.answers.items() if s not in proper},
        )
        self._expect("processes that ended by themselves", self.crew.deaths)
        self._report(traffic, reckoning.figures, len(log.entries))
        await self._stop_all_but_api(client)
        later = await months_later(
            client=client,
            shell=self.shell,
            record=self.record,
            archive=archive,
            logs=[role.log for role in self.service.roles],
            superuser_dsn=self.server.dsns.superuser_dsn,
            programs=self.server.programs,
        )
        for what, wrong in later.broken.items():
            self._expect(what, wrong)
        _write(
            f"{DAYS} days later",
            [f"{name} {count:,}" for name, count in sorted(later.figures.items())],
        )
        return self.broken

    def _expect(self, what: str, wrong: object) -> None:
        if wrong:
            size = len(wrong) if isinstance(wrong, list | dict | set) else wrong
            shown = list(wrong)[:5] if isinstance(wrong, list | set) else wrong
            self.broken.append(f"{what}: {size} ({shown})")

    async def _client(self) -> Client:
        scopes = "ingest,read,audit,pii,subscriptions,ops"
        key = (
            await self.shell.until_done("keys", "create", "--name", "ledger", "--scopes", scopes)
        ).strip()
        client = Client(
            self.service.session,
            lambda: self.crew.api_url,
            lambda: self.crew.url_of("ingress"),
            key,
        )
        body = b'{"url": "%s", "coalesce": false}' % self.receiver.url.encode()
        status, _, text = await client.once("POST", "/v1/subscriptions", body)
        assert status == 201, text
        self.receiver.secret = json.loads(text)["secret"]
        return client

    async def _erase(self, carrier: str, number: str) -> None:
        """Erase, and write it down when the command said that it is done."""
        async with self.erasing:
            await self.shell.until_done("erase", carrier, number, "--why", "asked to", "--json")
        self.record.erase(carrier, number)

    async def _store_heads(self, client: Client) -> None:
        while True:
            status, note = await client.get("/v1/checkpoint")
            if status == 200:
                self.record.store_head(note)
            await asyncio.sleep(5)

    async def _disturb(self, operating: asyncio.Task[None]) -> None:
        """Disturb until the time is over and the operators are done."""
        for victim in cycle(VICTIMS):
            await asyncio.sleep(self.rng.uniform(2, 7))
            if operating.done() and all(self.kills[each] for each in VICTIMS):
                return
            self.kills[victim] += 1
            if victim == "PostgreSQL: immediate":
                await self.server.crash()
            elif victim == "PostgreSQL: SIGKILL":
                await self.server.kill()
            else:
                self.crew.some(self.rng, victim).kill()

    async def _operate(self) -> None:
        """Run all repairs at least once, each to its completion."""
        await asyncio.sleep(min(20, SECONDS / 5))
        await self._teach()
        while True:
            for repair in REPAIRS:
                await self.shell.until_done(*repair)
            if self.is_over:
                return

    async def _teach(self) -> None:
        for carrier, code in STRANGE:
            await self.shell.until_done("carriers", "map", carrier, *mapping_of(code), "--force")

    async def _teach_and_replay(self) -> None:
        """Replay what was read before the mapping, and settled after the last replay."""
        await self.shell.until_done(
            "dead-letters", "replay", "--kind", "code", "--why", "the last of them"
        )
        for carrier, _ in STRANGE:
            await self.shell.until_done(
                "renormalize", "--carrier", carrier, "--why", "the last of them"
            )

    async def _drained(self, client: Client) -> None:
        """Wait until nothing waits, and nothing was sealed for a while."""
        async with asyncio.timeout(240):
            size, since = -1, time.monotonic()
            while time.monotonic() - since < 2.5:
                await asyncio.sleep(0.5)
                _, queue = await client.get("/v1/queue")
                _, feed = await client.get("/v1/feed?limit=1")
                waiting = sum(
                    sum(lane[state] for state in ("ready", "leased", "scheduled"))
                    for lane in queue["carriers"].values()
                )
                waiting += sum(queue["outbox"].values())
                if waiting or feed["tree_size"] != size:
                    size, since = feed["tree_size"], time.monotonic()

    async def _verdicts(self, key: str, note: str) -> None:
        """Check what the service says about itself, at rest."""
        head = Path(self.shell.environment["STATESVC_SEALER_CHECKPOINT_FILE"]).with_name(
            "stored-head"
        )
        head.write_text(note)
        _, told = await self.shell.run("verify", "--key", key, "--checkpoint", str(head), "--json")
        verdict = json.loads(told) if told else {"sound": False}
        self.sound_entries = verdict.get("entries", 0)
        self._expect(
            "verify --key: not sound",
            [] if verdict["sound"] else [told[-3000:] or self.shell.complaints[-1]],
        )
        code, told = await self.shell.run("rebuild", "shipment", "--compare", "--json")
        self._expect(
            "rebuild --compare: drift",
            [] if code == 0 else [told[-3000:] or self.shell.complaints[-1]],
        )

    async def _stop_all_but_api(self, client: Client) -> None:
        codes = await self.crew.stop()
        self._expect(
            "processes that did not end when asked to", [code for code in codes if code != 0]
        )
        await self.service.start("api")
        # on another port than the one before
        client.url = lambda: self.service.api.url

    def _report(self, traffic: Traffic, figures: dict[str, int], entries: int) -> None:
        acks = sorted(traffic.ack_seconds)
        lines = [
            f"outside ledger: {time.monotonic() - self.begun:.0f} s, {RATE:.0f} pushes/s",
            f"pushes {traffic.pushes:,}, answers {dict(sorted(traffic.answers.items()))} (0: none)",
            (
                f"ACK: p50 {percentile(acks, 0.5) * 1e3:.0f} ms, p99"
                f" {percentile(acks, 0.99) * 1e3:.0f} ms, longest {acks[-1]:.1f} s"
            ),
            f"kills {dict(self.kills)}, {sum(self.kills.values())} in all",
            f"commands tried {dict(self.shell.tries)}, killed halfway {dict(+self.shell.killed)}",
            f"log entries {entries:,}, sound by verify --key: {self.sound_entries:,}",
            *(f"{name} {count:,}" for name, count in sorted(figures.items())),
            *(f"BROKEN {broken}" for broken in self.broken),
        ]
        _write(lines[0], lines[1:])


def _write(title: str, lines: Iterable[str]) -> None:
    sys.stdout.write("\n" + "\n  ".join([title, *lines]) + "\n")
    sys.stdout.flush()
