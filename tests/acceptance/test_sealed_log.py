"""The whole service with its sealer: proved within a second, vouched for by outsiders."""

import asyncio
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from events.merkle.checkpoint import VerifierKey, open_checkpoint, read_checkpoint
from events.merkle.proof import verify_inclusion
from statesvc.database.log_guard import install_guard
from tests.acceptance.processes import Service
from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.stories import ups_alert
from tests.world.postgres import Server
from tests.world.stamping import make_tsa, serving
from tests.world.waiting import until
from tests.world.witness import OtherWitness


async def test_a_webhook_is_proved_within_a_second_and_a_change_is_found(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    file = tmp_path / "checkpoint"
    async with await service_maker(
        tmp_path, {"STATESVC_SEALER_CHECKPOINT_FILE": str(file)}
    ) as service:
        await service.start("api", "worker", "sealer", "sealer")
        seconds = sorted(
            [await _seconds_until_proved(service, f"1ZPROVED{place:08d}") for place in range(5)]
        )
        assert seconds[2] < 1.0, seconds

        # the leader dies: the standby goes on
        (leader,) = [
            role for role in service.roles if role.role == "sealer" and await _leads(service, role)
        ]
        leader.kill()
        await _seconds_until_proved(service, "1ZAFTERWARDS0001")

        head = tmp_path / "head"
        head.write_text(file.read_text())
        proving = ("verify", "--processes", "2", "--checkpoint", str(head))
        assert (await service.run(*proving))[0] == 0
        async with await psycopg.AsyncConnection.connect(
            service.owner_dsn, autocommit=True
        ) as owner:
            await owner.execute("ALTER TABLE statesvc.event DISABLE TRIGGER ALL")
            partitions = await (
                await owner.execute(
                    "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent ="
                    " 'statesvc.event'::regclass"
                )
            ).fetchall()
            for (partition,) in partitions:
                await owner.execute(f"ALTER TABLE {partition} DISABLE TRIGGER ALL".encode())
            await owner.execute("DELETE FROM statesvc.event WHERE version = 1")
        exit_code, said, _ = await service.run(*proving)
        assert (exit_code, "THE LOG WAS CHANGED" in said) == (1, True)


async def test_who_read_personal_data_is_proved_long_before_the_sealers_sweep(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    async with await service_maker(tmp_path, {}) as service:
        await service.start("api", "worker", "sealer")
        await _seconds_until_proved(service, "1ZREAD0000000001")
        _, before = await service.get("/v1/feed")
        last = before["items"][-1]["index"]
        status, _ = await service.get(
            "/v1/shipments/ups/1ZREAD0000000001/audit", include="personal"
        )
        assert status == 200
        # the sweep would come after 30 s
        async with asyncio.timeout(10):
            while True:
                _, after = await service.get("/v1/feed", after=str(last))
                if "read_personal" in [item["entry"].get("verb") for item in after["items"]]:
                    break
                await asyncio.sleep(0.01)


async def _seconds_until_proved(service: Service, number: str) -> float:
    status, _ = await service.webhook("ups", ups_alert(number, "I/OT", day=3, minute=300).body)
    assert status == 200
    started = time.perf_counter()
    async with asyncio.timeout(30):
        while True:
            status, history = await service.get(f"/v1/shipments/ups/{number}/history")
            if status == 200:
                event_id = history["items"][0]["event_id"]
                status, proof = await service.get(
                    "/v1/proofs/inclusion", carrier_id="ups", event_id=event_id
                )
                if status == 200:
                    break
            await asyncio.sleep(0.01)
    seconds = time.perf_counter() - started
    _, keys = await service.get("/v1/checkpoint/keys")
    head = open_checkpoint(
        proof["checkpoint"], [VerifierKey.parse(key["key"]) for key in keys["items"]]
    ).checkpoint
    path = [bytes.fromhex(each) for each in proof["path"]]
    assert verify_inclusion(
        bytes.fromhex(proof["leaf_hash"]),
        index=proof["index"],
        size=head.size,
        path=path,
        root=head.root,
    )
    return seconds


async def _leads(service: Service, role: Any) -> bool:
    async with service.session.get(role.metrics_url) as answer:
        return (
            re.search(r"^statesvc_sealer_leads\S* 1\.0$", await answer.text(), re.MULTILINE)
            is not None
        )


async def test_heads_are_stamped_cosigned_and_kept_elsewhere_and_an_auditor_verifies_them(
    server: Server, service_maker: ServiceMaker, tmp_path: Path
) -> None:
    shelf = tmp_path / "shelf"
    other = OtherWitness()
    async with serving(make_tsa(tmp_path / "tsa")) as tsa, other.serving() as witness:
        settings = {
            "STATESVC_CHECKPOINT_WITNESSES": f"{other.key} {witness.url}",
            "STATESVC_CHECKPOINT_STAMP_URL": tsa.url,
            "STATESVC_CHECKPOINT_STAMP_CERT": str(tsa.folder / "root.pem"),
            "STATESVC_CHECKPOINT_PUBLISH": str(shelf),
            "STATESVC_CHECKPOINT_PUBLISH_SECONDS": "0.2",
        }
        async with await service_maker(tmp_path, settings) as service:
            mine = server.on(str(conninfo_to_dict(service.owner_dsn)["dbname"]))
            await install_guard(mine.superuser_dsn)
            await service.start("api", "worker", "sealer")
            status, _ = await service.webhook(
                "ups", ups_alert("1ZVOUCHED0000001", "I/OT", day=3, minute=300).body
            )
            assert status == 200

            async def is_there() -> bool:
                covered = "SELECT coalesce(max(tree_size), 0) FROM statesvc.checkpoint"
                size = await service.value(covered)
                stamped = await service.value("SELECT count(*) FROM statesvc.checkpoint_stamp")
                witnessed = await service.value(
                    "SELECT count(tree_size) FROM statesvc.cosigned_head"
                )
                latest = shelf / "latest"
                return bool(
                    size
                    and stamped
                    and witnessed
                    and latest.exists()
                    and read_checkpoint(latest.read_text()).size == size
                )

            await until(is_there)
            said = await verdict_of(
                mine.auditor_dsn,
                "--checkpoint",
                str(shelf / "latest"),
                "--tsa-cert",
                str(tsa.folder / "root.pem"),
            )
            assert "The log is sound" in said
            assert "1 checkpoints bear a time stamp (signed by the authority)" in said
            cosigned = await service.value(
                "SELECT note || cosignatures FROM statesvc.cosigned_head JOIN statesvc.checkpoint"
                " USING (tree_size)"
            )
            (tmp_path / "cosigned").write_text(str(cosigned))
            head = ("--checkpoint", str(tmp_path / "cosigned"), "--witness", other.key)
            assert "The log is sound" in await verdict_of(mine.auditor_dsn, *head)


async def verdict_of(dsn: str, *arguments: str) -> str:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("STATESVC_")
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "statesvc", "verify", "--processes", "1", *arguments),
        env={**environment, "DATABASE_URL": dsn},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said
    return said.decode()
