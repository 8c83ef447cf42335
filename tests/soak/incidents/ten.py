"""The ten incidents."""

import asyncio
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import psycopg
from psycopg import AsyncConnection

from tests.soak.incidents.incident import Incident
from tests.soak.incidents.on_call import OnCall
from tests.soak.incidents.scene import Scene, alerts_of_ups, cancelled
from tests.world.ports import free_port

REPORT: Final = "nightly-report"
LOOKS_MAX: Final = 20
MORE_SECONDS: Final = 10
"""Seconds of load after the backup: what the restore loses."""
VOLUME_BYTES: Final = 8_000_000_000
WAL_FILES: Final = 200
"""Files of 16 MiB: more than the embedded server retains by itself (2 GB), so that dropping
the slot is what helps.
"""


async def _lock_what_pushes_need(scene: Scene) -> None:
    async def report() -> None:
        try:
            async with await AsyncConnection.connect(
                scene.dsns.owner, application_name=REPORT
            ) as connection:
                while True:
                    await connection.execute(
                        "LOCK TABLE statesvc.receipt IN SHARE ROW EXCLUSIVE MODE"
                    )
                    await connection.execute("SELECT pg_sleep(0.7)")
                    await connection.commit()
                    await asyncio.sleep(0.1)
        except psycopg.OperationalError:
            return

    scene.trouble(report(), REPORT)


async def _end_the_session(_scene: Scene, on_call: OnCall) -> None:
    for _ in range(LOOKS_MAX):
        seen = await on_call.look("AckLatency")
        found = re.search(rf"^ *(\d+) \|[^\n]*{REPORT}", seen, re.MULTILINE)
        if found is not None:
            await on_call.do("AckLatency", "psql", "pg_terminate_backend", PID=found[1])
            return
    raise AssertionError(f"the page does not find the session: {seen}")


async def _freeze_the_sealer(scene: Scene) -> None:
    """Freeze the sealer, and the one that its supervisor starts in its place, and so on."""

    async def freeze() -> None:
        while True:
            frozen = await scene.pid_of("sealer")
            with suppress(ProcessLookupError):
                os.kill(frozen, signal.SIGSTOP)
            await asyncio.sleep(1)

    scene.trouble(freeze(), "frozen sealer")


async def _start_another_sealer(scene: Scene, on_call: OnCall) -> None:
    await cancelled(*scene.troubles)
    seen = await on_call.look("SealerStopped")
    found = re.search(r"^ *(\d+) \|[^\n]*sealer", seen, re.MULTILINE)
    if found is not None:  # else a sealer has ended that session by itself before the alert fired
        await on_call.do("SealerStopped", "psql", "pg_terminate_backend", PID=found[1])
    await on_call.start("SealerStopped", "statesvc sealer", "--port", str(free_port()))


async def _change_the_format(scene: Scene) -> None:
    bodies = (body[:-40] for body in alerts_of_ups("F"))
    scene.trouble(scene.push_steadily(bodies, rate=20), "changed format")


async def _hold_the_carrier(scene: Scene, on_call: OnCall) -> None:
    seen = await on_call.look("FormatChanged")
    assert re.search(r"\bups +message +unreadable", seen), seen
    await on_call.do("FormatChanged", "statesvc rollout hold")
    await cancelled(*scene.troubles)
    await on_call.do("FormatChanged", "statesvc rollout release")


async def _flood(scene: Scene) -> None:
    # what a bound is for, and what it costs when it is forgotten
    await scene.command(
        "carriers", "quota", "ups", "--in-flight", "1", "--why", "it flooded us on Sunday"
    )
    scene.trouble(scene.push_steadily(alerts_of_ups("B"), rate=300), "flood")


async def _drain(scene: Scene, on_call: OnCall) -> None:
    seen = await on_call.look("Lag")
    assert re.search(r"^ups +\d{4,}", seen, re.MULTILINE), seen
    await cancelled(*scene.troubles)
    await on_call.do("Lag", "carriers quota")


async def _say_nothing(scene: Scene) -> None:
    scene.silent.add("ups")


async def _wake_the_carrier(scene: Scene, on_call: OnCall) -> None:
    seen = await on_call.look("CarrierSilent")
    assert re.search(r"^ups ", seen, re.MULTILINE), seen
    scene.silent.clear()


async def _take_nothing(scene: Scene) -> None:
    await scene.receiver.stop()


async def _take_again(scene: Scene, on_call: OnCall) -> None:
    seen = await on_call.look("SubscriberFailing", ID=scene.subscription_id)
    assert "connection_refused" in seen, seen
    await scene.receiver.start()
    await on_call.do("SubscriberFailing", "statesvc subscriptions test", ID=scene.subscription_id)


async def _end_the_proxy(scene: Scene) -> None:
    assert scene.proxy is not None
    scene.proxy.cut()


async def _start_the_proxy(scene: Scene, on_call: OnCall) -> None:
    seen = await on_call.look("ListenerDown")
    assert re.search(r"FAIL +wake-ups +STATESVC_LISTEN_URL does not answer", seen), seen
    assert scene.proxy is not None
    scene.proxy.heal()


async def _cut_bodies_off(scene: Scene) -> None:
    def bodies() -> Iterator[bytes]:
        for place, body in enumerate(alerts_of_ups("D")):
            yield body[:-40] if place % 25 == 0 else body

    scene.trouble(scene.push_steadily(bodies(), rate=50), "bodies cut off")


async def _discard(scene: Scene, on_call: OnCall) -> None:
    seen = await on_call.look("DeadLettersGrow")
    found = re.search(r"\bups +message +unreadable .* (\d+) +\d+ x not JSON", seen)
    assert found is not None, seen
    assert "not JSON" in await on_call.do("DeadLettersGrow", "dead-letters show", ID=found[1])
    await cancelled(*scene.troubles)
    await on_call.do("DeadLettersGrow", "discard --carrier")


def _small_volume(folder: Path) -> Path:
    volume = folder / "volume"
    volume.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={VOLUME_BYTES},mode=0755", "tmpfs", volume],
        check=True,
    )
    return volume / "data"


async def _leave_a_slot(scene: Scene) -> None:
    await scene.execute("SELECT pg_create_physical_replication_slot('old_standby', true)")
    for _ in range(WAL_FILES):
        await scene.execute("SELECT pg_logical_emit_message(false, 'old', ''), pg_switch_wal()")


async def _drop_the_slot(_scene: Scene, on_call: OnCall) -> None:
    seen = await on_call.look("DiskFilling")
    found = re.search(r"slot_name [^\n]*\n[^\n]*\n (\w+) +\| \d+ [MG]B", seen)
    assert found is not None, seen
    await on_call.do("DiskFilling", "pg_drop_replication_slot", NAME=found[1])
    await on_call.do("DiskFilling", '"CHECKPOINT"')


async def _restore_a_backup(scene: Scene) -> None:
    assert scene.cluster is not None
    await asyncio.to_thread(scene.cluster.base_backup)
    await asyncio.sleep(MORE_SECONDS)
    await scene.down()
    await asyncio.to_thread(scene.cluster.restore)
    await scene.begin_up()


async def _fork(scene: Scene, on_call: OnCall) -> None:
    seen = await on_call.look("SealerRefuses")
    assert "restored" in seen, seen
    await scene.down()
    await on_call.do("SealerRefuses", "log fork", "--dry-run")
    await on_call.do("SealerRefuses", 'log fork --why "restored the backup of 02:00"')
    await scene.up()
    await on_call.do("SealerRefuses", "statesvc verify")


TEN: Final = (
    Incident(
        name="slow-ack",
        what="A report locks what pushes need, for 0.7 s, repeatedly",
        alert="AckLatencyBurnsFast",
        strike=_lock_what_pushes_need,
        repair=_end_the_session,
    ),
    Incident(
        name="flood",
        what="A carrier floods, and the bound that a human once gave it was forgotten",
        alert="InboxBacklog",
        strike=_flood,
        repair=_drain,
    ),
    Incident(
        name="carrier-silent",
        what="A carrier disabled our webhook",
        alert="CarrierSilent",
        strike=_say_nothing,
        repair=_wake_the_carrier,
        outside="the webhook was enabled at the carrier",
        factor=240,
        well_seconds=460,
    ),
    Incident(
        name="unreadable-format",
        what="A carrier's bodies cannot be read any more",
        alert="FormatChanged",
        strike=_change_the_format,
        repair=_hold_the_carrier,
        outside="the carrier took its change back",
    ),
    Incident(
        name="dead-subscriber",
        what="A subscriber's receiver is gone",
        alert="SubscriberFailing",
        strike=_take_nothing,
        repair=_take_again,
        outside="its owner started it again",
        fires_within=1200,
    ),
    Incident(
        name="killed-listener",
        what="The proxy in `STATESVC_LISTEN_URL` ended",
        alert="ListenerDown",
        strike=_end_the_proxy,
        repair=_start_the_proxy,
        outside="the proxy was started again",
        has_listen_proxy=True,
    ),
    Incident(
        name="dead-letters",
        what="One in 25 bodies of a carrier comes cut off",
        alert="DeadLettersGrow",
        strike=_cut_bodies_off,
        repair=_discard,
        outside="the carrier was repaired",
        fires_within=900,
    ),
    Incident(
        name="sealer-stopped",
        what="The sealer's process freezes and holds its lock",
        alert="SealerStopped",
        strike=_freeze_the_sealer,
        repair=_start_another_sealer,
    ),
    Incident(
        name="disk-full",
        what="The slot of a standby that is gone holds the write-ahead log",
        alert="DiskFilling",
        strike=_leave_a_slot,
        repair=_drop_the_slot,
        data_dir=_small_volume,
    ),
    Incident(
        name="restored-backup",
        what="The database is replaced by an older backup",
        alert="SealerRefuses",
        strike=_restore_a_backup,
        repair=_fork,
        outside="roles stopped before, started after",
    ),
)
