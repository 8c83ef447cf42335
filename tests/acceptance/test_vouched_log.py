"""The sealer with outsiders who vouch for it: real processes, a real authority, a folder elsewhere;
all of it verified as the auditor.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from psycopg.conninfo import conninfo_to_dict

from events.merkle.checkpoint import read_checkpoint
from statesvc.database.log_guard import install_guard
from tests.acceptance.processes import until_false
from tests.acceptance.stories import ups_alert
from tests.world.postgres import Server
from tests.world.stamping import make_tsa, serving

ServiceMaker = Callable[..., Any]


async def test_heads_are_stamped_and_kept_elsewhere_and_an_auditor_verifies_them(
    server: Server, service_maker: ServiceMaker, tmp_path: Path
) -> None:
    shelf = tmp_path / "shelf"
    async with serving(make_tsa(tmp_path / "tsa")) as tsa:
        settings = {
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

            async def is_missing() -> bool:
                covered = "SELECT coalesce(max(tree_size), 0) FROM statesvc.checkpoint"
                size = await service.value(covered)
                stamped = await service.value("SELECT count(*) FROM statesvc.checkpoint_stamp")
                latest = shelf / "latest"
                return not (
                    size
                    and stamped
                    and latest.exists()
                    and read_checkpoint(latest.read_text()).size == size
                )

            async with asyncio.timeout(30):
                await until_false(is_missing)
            said = await _verify(
                mine.auditor_dsn,
                "--checkpoint",
                str(shelf / "latest"),
                "--tsa-cert",
                str(tsa.folder / "root.pem"),
            )
            assert "The log is sound" in said
            assert "1 checkpoints bear a time stamp (signed by the authority)" in said


async def _verify(dsn: str, *arguments: str) -> str:
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
