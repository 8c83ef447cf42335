"""An old fleet beside ours on one carrier: refused, forced, 1, 10, 50, 100 per cent and back under
load, killed on both sides, and dead.
"""

import asyncio
import json
import os
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from events.crypto.keyring import body_context
from events.crypto.sealing import SealError, SealingKey
from statesvc.database.keyring_store import load_keyring, parse_master_keys
from statesvc.log.json_compression import decompress_json
from tests.acceptance.posting import post_webhook
from tests.acceptance.processes import MASTER_KEY, Service, until_false
from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.stories import messages
from tests.node.grants import foreign_role
from tests.node.node_worker import start_worker
from tests.world.postgres import Server

SIZE: Final = int(os.environ.get("STATESVC_SOAK_MESSAGES", "1000"))
"""Messages at each step."""
OLD: Final = "old@1"
PYTHON: Final = (sys.executable, "-m", "tests.soak.old_fleet")
PLANTED: Final = {
    "DP": "out_for_delivery",
    "AR": "available_for_pickup",
    "OT": "delivery_attempted",
}
SETTINGS: Final = {
    "STATESVC_WEBHOOK_SECRET_UPS": None,
    "STATESVC_LOG_LEVEL": "warning",
    "STATESVC_WORKER_LEASE_SECONDS": "6",
    "STATESVC_WORKER_STATEMENT_SECONDS": "4",
    "STATESVC_WORKER_LOCK_SECONDS": "2",
    "STATESVC_WORKER_IDLE_IN_TRANSACTION_SECONDS": "3",
}
_READERS: Final = "SELECT message_id, normalizer FROM statesvc.message WHERE message_id = ANY (%s)"
_SHARE: Final = "SELECT m FROM unnest(%s::uuid[]) m WHERE statesvc.in_share(m, 'ups', %s)"
_TRIALS_LEFT: Final = "SELECT EXISTS (SELECT FROM statesvc.trial)"


@dataclass(slots=True)
class Strangling:
    """The service, the old fleet, and what was pushed."""

    service: Service
    dsn: str
    inbox_key: bytes
    folder: Path
    bodies: list[bytes] = field(default_factory=list)
    fleet: list[asyncio.subprocess.Process] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    async def start(self, name: str = OLD, **planted: Any) -> None:
        settings = {
            "NORMALIZER": name,
            "CARRIERS": "ups",
            "LEASE_SECONDS": "4",
            "SWEEP_SECONDS": "1",
            "PLANTED": json.dumps(planted),
        }
        log = self.folder / "fleet.log"
        self.fleet.append(await start_worker(self.dsn, self.inbox_key, log, PYTHON, **settings))

    async def kill(self) -> None:
        """Kill all of the fleet, as a power cut does."""
        for process in self.fleet:
            process.kill()
            await process.wait()
        self.fleet.clear()

    async def change_rollout(self, expected: int = 200, **change: Any) -> dict[str, Any]:
        async with self.service.session.put(
            f"{self.service.api.url}/v1/rollouts/ups", json={"why": "story", **change}
        ) as answer:
            shown: dict[str, Any] = await answer.json()
            assert answer.status == expected, shown
            return shown

    async def push(self, count: int) -> set[UUID]:
        """Push by eight clients; return the ids that were acknowledged."""
        queue = [self.bodies.pop() for _ in range(count)]
        pushed: set[UUID] = set()

        async def client() -> None:
            while queue:
                status, message_id = await post_webhook(self.service, "ups", queue.pop())
                assert status == 200
                pushed.add(UUID(message_id))

        await asyncio.gather(*(client() for _ in range(8)))
        assert len(pushed) == count
        return pushed

    async def settled(self, *, seconds: float = 300) -> None:
        await self.service.drained(seconds, pause_seconds=0.2)
        async with asyncio.timeout(seconds):
            await until_false(lambda: self.service.value(_TRIALS_LEFT), pause_seconds=0.2)

    async def share(self, pushed: set[UUID], percent: int) -> set[UUID]:
        return {
            message_id for (message_id,) in await self.service.rows(_SHARE, sorted(pushed), percent)
        }

    async def read_by(self, pushed: set[UUID]) -> dict[str, set[UUID]]:
        """Return each message once; by whom."""
        found: dict[str, set[UUID]] = {}
        rows = await self.service.rows(_READERS, sorted(pushed))
        assert len(rows) == len(pushed), "each message has one verdict"
        for message_id, normalizer in rows:
            found.setdefault(normalizer, set()).add(message_id)
        return found

    async def totals(self) -> dict[str, Any]:
        async with self.service.session.get(
            f"{self.service.api.url}/v1/rollouts/ups/diffs"
        ) as answer:
            totals: dict[str, Any] = (await answer.json())["totals"]
            return totals


def _codes(bodies: list[bytes]) -> Counter[str]:
    return Counter(json.loads(body)["activityStatus"]["code"] for body in bodies)


@asynccontextmanager
async def _strangling(
    maker: ServiceMaker, server: Server, folder: Path
) -> AsyncIterator[Strangling]:
    service = await maker(folder, SETTINGS)
    superuser_dsn = make_conninfo(
        server.superuser_dsn, dbname=conninfo_to_dict(service.owner_dsn)["dbname"]
    )
    async with await AsyncConnection.connect(service.service_dsn, autocommit=True) as connection:
        keyring = await load_keyring(connection, parse_master_keys(MASTER_KEY))
    async with foreign_role(superuser_dsn, service.service_dsn) as dsn, service:
        await service.start("api", "worker", "worker")
        story = Strangling(service, dsn, keyring.inbox.key, folder)
        story.bodies = [
            message.body
            for message in messages(12 * SIZE + 3_000, seed=37)
            if message.carrier_id == "ups"
        ]
        try:
            yield story
        finally:
            await story.kill()
            sys.stdout.write("\n" + "\n  ".join(story.notes) + "\n")


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_an_old_fleet_reads_its_share_and_nothing_else_and_the_way_back_takes_less_than_a_second(
    service_maker: ServiceMaker, server: Server, tmp_path: Path
) -> None:
    async with _strangling(service_maker, server, tmp_path) as story:
        story.notes.append(f"strangler: {SIZE:,} messages a step")
        await _refused_and_forced(story)
        await _grow(story)
        await _back_under_load(story)
        await _drill(story)
        await _erase(story)
        await _dead(story)
        assert (
            await story.service.rows(
                "SELECT cause, detail FROM statesvc.dead_letter WHERE kind = 'message'"
            )
            == []
        )
        pushed = await story.service.value("SELECT count(*) FROM statesvc.body")
        assert await story.service.value("SELECT count(*) FROM statesvc.message") == pushed, (
            "each acknowledged message was settled once"
        )


async def _refused_and_forced(story: Strangling) -> None:
    shown = await story.change_rollout(candidate="bad@1", percent=0, shadow=True)
    assert shown["warnings"] == [
        "no worker asked for bad@1 within the last minute: is it misspelt?"
    ]
    await story.start("bad@1", omit=["DP"])
    bodies = story.bodies[-200:]
    await story.push(200)
    await story.settled()
    totals = await story.totals()
    assert totals["fields"] == {"event": _codes(bodies)["DP"]}
    problem = await story.change_rollout(422, percent=1)
    assert problem["errors"][0]["pointer"] == "/body/percent"
    await story.change_rollout(422, percent=1, force=True, why="")
    await story.change_rollout(percent=1, force=True)
    await story.change_rollout(percent=0)
    await story.kill()
    story.notes.append(
        f"a candidate without {totals['fields']['event']} events was refused, and forced with a"
        " reason"
    )


async def _grow(story: Strangling) -> None:
    await story.start(status=PLANTED)
    await story.start(status=PLANTED)
    await story.change_rollout(candidate=OLD, percent=0, shadow=True)
    expected = 0
    for percent in (0, 1, 10, 50, 100):
        await story.change_rollout(percent=percent, shadow=True)
        begun, bodies = time.monotonic(), story.bodies[-SIZE:]
        pushing = asyncio.create_task(story.push(SIZE))
        if percent == 50:
            await _kill_each_side(story)
        pushed = await pushing
        await story.settled()
        share, readers = await story.share(pushed, percent), await story.read_by(pushed)
        assert readers.get(OLD, set()) == share
        assert readers.get("ups@1", set()) == pushed - share
        by_number = await _codes_outside(story, pushed - share, bodies)
        expected += sum(by_number[code] for code in PLANTED)
        totals = await story.totals()
        assert totals["dropped"] == 0
        assert totals["fields"] == ({"status": expected} if expected else {}), f"at {percent} %"
        story.notes.append(
            f"{percent} %: {len(share):,} of {SIZE:,} read by {OLD}, exactly its share, in"
            f" {time.monotonic() - begun:.1f} s; {totals['differing']:,} of {totals['messages']:,}"
            " trials differ, all in the status of 3 codes"
        )


async def _codes_outside(story: Strangling, rest: set[UUID], bodies: list[bytes]) -> Counter[str]:
    """Return the codes of the messages that were tried, from the log."""
    rows = await story.service.rows(
        "SELECT canonical FROM statesvc.event WHERE message_id = ANY (%s)", sorted(rest)
    )
    said = Counter(json.loads(decompress_json(canonical))["raw"]["code"] for (canonical,) in rows)
    assert sum(said.values()) <= len(bodies)
    return said


async def _kill_each_side(story: Strangling) -> None:
    victim = story.fleet.pop(0)
    await asyncio.sleep(0.3)
    victim.kill()
    await victim.wait()
    await story.start(status=PLANTED)
    ours = next(role for role in story.service.roles if role.role == "worker")
    ours.kill()
    await ours.process.wait()
    await story.service.start("worker")


async def _back_under_load(story: Strangling) -> None:
    pushing = asyncio.create_task(story.push(SIZE))
    await asyncio.sleep(0.5)
    begun = time.monotonic()
    await story.change_rollout(percent=0)
    turned = time.monotonic() - begun
    turned_at = await story.service.value("SELECT statesvc.clock()")
    pushed = await pushing
    await story.settled()
    late = await story.service.value(
        "SELECT count(*) FROM statesvc.message WHERE normalizer = %s AND received_at > %s AND"
        " message_id = ANY (%s)",
        *(OLD, turned_at, sorted(pushed)),
    )
    assert late == 0, "what came after the turn is read by ours"
    first = await story.service.value(
        "SELECT extract(epoch FROM min(settled_at) - %s)::float8 FROM statesvc.message m WHERE"
        " received_at > %s AND normalizer = 'ups@1' AND statesvc.in_share(message_id, carrier_id,"
        " 100)",
        *(turned_at, turned_at),
    )
    assert await story.service.value("SELECT count(*) FROM statesvc.inbox") == 0
    readers = {name: len(read) for name, read in (await story.read_by(pushed)).items()}
    story.notes.append(
        f"back from 100 % under load: the call took {turned:.2f} s, the first later message was"
        f" settled by ours {first:.2f} s after it; {readers}, 0 stranded"
    )
    assert first < 1


async def _drill(story: Strangling) -> None:
    await story.change_rollout(percent=50)
    pushing = asyncio.create_task(story.push(SIZE))
    await asyncio.sleep(0.5)
    code, said, errors = await story.service.run("rollout", "drill", "ups")
    assert code == 0, (said, errors)
    assert "stranded: 0; at 50 % again" in said
    await pushing
    await story.settled()
    story.notes += [f"drill: {line}" for line in said.splitlines()]


async def _erase(story: Strangling) -> None:
    """Erase while trials wait, and one is handed over and not yet compared."""
    await story.change_rollout(percent=0, shadow=True)
    await story.kill()
    bodies = story.bodies[-40:]
    number = json.loads(bodies[0])["trackingNumber"]
    await story.push(40)
    await story.service.drained()
    (shipment,) = await story.service.rows(
        "SELECT shipment_id FROM statesvc.stream WHERE number = %s", number
    )
    of_it = "SELECT trial_id, sealed_key, message_id FROM statesvc.trial WHERE %s = ANY (shipments)"
    waiting = await story.service.rows(of_it, *shipment)
    assert waiting
    await story.service.rows(
        "UPDATE statesvc.trial SET verdict = 'declined' WHERE trial_id = %s RETURNING 1",
        waiting[0][0],
    )
    code, said, errors = await story.service.run("erase", "ups", number, "--why", "story")
    assert code == 0, (said, errors)
    assert await story.service.rows(of_it, *shipment) == []
    kept = await story.service.rows(
        "SELECT message_id, sealed_key FROM statesvc.message WHERE %s = ANY (shipments) AND"
        " sealed_key IS NOT NULL",
        *shipment,
    )
    for message_id, sealed_key in kept:
        with pytest.raises(SealError):
            SealingKey(story.inbox_key).unwrap(sealed_key, body_context(message_id))
    story.notes.append(
        f"erased while {len(waiting)} trials of the parcel waited: none is left, no body opens"
        " under the inbox key"
    )
    await story.start(status=PLANTED)
    await story.settled()


async def _dead(story: Strangling) -> None:
    await story.change_rollout(percent=50, shadow=False, fallback_seconds=5)
    pushing = asyncio.create_task(story.push(400))
    await asyncio.sleep(0.2)
    begun = time.monotonic()
    await story.kill()
    pushed = await pushing
    async with asyncio.timeout(60):
        await until_false(
            lambda: story.service.value(
                "SELECT NOT EXISTS (SELECT FROM statesvc.reader WHERE fallbacks > 0)"
            )
        )
    first = time.monotonic() - begun
    _, said, errors = await story.service.run("status")
    assert f"{OLD} reads 50 %" in said, errors
    await story.settled(seconds=120)
    readers = {name: len(read) for name, read in (await story.read_by(pushed)).items()}
    story.notes.append(
        f"the fleet dead at 50 %, fallback_seconds 5: ours took its share from {first:.1f} s on,"
        f" all was settled after {time.monotonic() - begun:.1f} s; {readers}"
    )
