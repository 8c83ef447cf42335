"""The TypeScript client as a package: built, packed, installed, used as README and the page of the
API show it, and run in Node.
"""

import asyncio
import fcntl
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from standardwebhooks import Webhook

from tests.acceptance.processes import BOOTSTRAP_KEY, Service
from tests.clients.cut_stream import is_lost
from tests.clients.faulty_server import FaultyServer, answer
from tests.clients.installed_client import CLIENTS, bytes_max
from tests.clients.lost_answers import ONCE, effects, told_service
from tests.clients.planted_errors import PLANTED
from tests.clients.test_client_retries import (
    APPENDED,
    AWAY,
    CUT,
    HALF,
    LIMITED,
    PROXY,
    QUEUE,
    SILENCE,
)
from tests.world.programs import required

PROGRAMS: Final = Path(__file__).with_name("typescript")
MODULES: Final = Path(__file__).parents[1] / "node" / "node_modules"
SECRET: Final = "whsec_c2VjcmV0IG9mIHRoZSB0ZXN0cw=="
DEPENDENCIES: Final = ("openapi-fetch", "openapi-typescript-helpers", "eventsource-parser")

TSC_OPTIONS: Final = (
    *("--strict", "--skipDefaultLibCheck", "--target", "es2022", "--module", "nodenext"),
    *("--lib", "es2022,dom,dom.asynciterable"),
)

PLANTED_HEAD: Final = (
    "import { Client } from 'statesvc-client'\nconst client = new Client('http://a.example')\n"
)
PROCESS: Final = (
    "declare const process: { argv: string[], env: Record<string, string | undefined>, exit: (code:"
    " number) => never }"
)

pytestmark = pytest.mark.usefixtures("own_processes")


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an application with the packed client; all processes of a run share it."""
    required("node", "nodejs")
    if not MODULES.joinpath("openapi-fetch").exists():
        reason = "openapi-fetch is not installed (npm ci --prefix tests/node)"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder /= "typescript"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            folder.mkdir()
            build(folder)
    return folder / "application"


def build(folder: Path) -> None:
    """Pack and install the client, and compile programs and examples."""
    sources = folder / "sources" / "typescript"
    shutil.copytree(
        CLIENTS / "typescript",
        sources,
        ignore=shutil.ignore_patterns("dist", "node_modules", "schema.ts"),
    )
    shutil.copy(CLIENTS / "openapi.json", sources.parent)
    sources.joinpath("node_modules").symlink_to(MODULES)
    run("npm", "pack", "--pack-destination", folder, folder=sources)
    (packed,) = folder.glob("*.tgz")
    assert 0.8 * bytes_max("typescript") < packed.stat().st_size < bytes_max("typescript"), (
        f"{packed.stat().st_size} bytes packed"
    )
    # they stand here already: nothing is fetched
    run(
        "npm",
        "pack",
        "--ignore-scripts",
        "--pack-destination",
        folder,
        *(MODULES / name for name in DEPENDENCIES),
        folder=folder,
    )
    application = folder / "application"
    application.mkdir()
    application.joinpath("package.json").write_text('{"type": "module"}')
    run(
        "npm",
        "install",
        "--offline",
        "--no-audit",
        "--no-fund",
        *folder.glob("*.tgz"),
        folder=application,
    )
    application.joinpath("process.d.ts").write_text(PROCESS)
    for program in PROGRAMS.glob("*.ts"):
        shutil.copy(program, application)
    for number, example in enumerate(examples()):
        application.joinpath(f"example_{number}.ts").write_text(example)
    calls = "\n".join(f"void {call}" for _, call in PLANTED.values())
    application.joinpath("planted.ts").write_text(f"{PLANTED_HEAD}{calls}")
    names = [path.name for path in application.glob("*.ts")]
    with application.joinpath("tsc.out").open("wb") as said:
        command: list[str | Path] = [MODULES / ".bin" / "tsc", *TSC_OPTIONS, *names]
        subprocess.run(command, cwd=application, stdout=said, timeout=170, check=False)


def examples() -> list[str]:
    """Return the programs of the README."""
    programs = re.findall(
        r"^```ts\n([\s\S]*?)^```$",
        (CLIENTS / "typescript" / "README.md").read_text("utf-8"),
        re.MULTILINE,
    )
    assert programs
    return programs


def run(*command: str | Path, folder: Path) -> str:
    ended = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=170, check=False
    )
    assert ended.returncode == 0, f"{ended.stdout[-2000:]}{ended.stderr[-2000:]}"
    return ended.stdout


def test_tsc_compiles_all_programs_and_finds_each_planted_error(application: Path) -> None:
    said = application.joinpath("tsc.out").read_text()
    found = re.findall(r"^(\S+)\((\d+),\d+\): error", said, re.MULTILINE)
    assert found == [("planted.ts", str(3 + number)) for number in range(len(PLANTED))], said


@pytest.mark.parametrize(
    ("call", "script", "outcome", "tries"),
    [
        ("read", [LIMITED, AWAY, PROXY, QUEUE], "done", 4),
        ("read", [CUT, HALF, SILENCE, QUEUE], "done", 4),
        ("submit", [AWAY, CUT, SILENCE, APPENDED], "done", 4),
        ("subscribe", [AWAY], "503", 1),
        ("subscribe", [LIMITED], "429", 4),
        ("subscribe", [CUT], "no answer", 1),
        ("subscribe", [SILENCE], "no answer", 1),
        ("subscribe", [PROXY], "502", 1),
        ("subscribe", [HALF], "no answer", 1),
        ("read", [AWAY], "503", 4),
        ("read", [CUT], "no answer", 4),
        ("read", [answer(429, headers="Retry-After: 3600\r\n")], "429", 1),
    ],
)
async def test_it_repeats_only_what_has_no_second_effect(
    application: Path, call: str, script: list[bytes | None], outcome: str, tries: int
) -> None:
    async with FaultyServer(script).running() as server:
        printed = await asyncio.to_thread(
            run, "node", "faults.js", server.url, call, folder=application
        )
        assert (printed.strip(), len(server.requests)) == (outcome, tries)


async def test_a_pause_that_is_asked_for_is_kept(application: Path) -> None:
    began = time.monotonic()
    async with FaultyServer([answer(429, headers="Retry-After: 1\r\n"), QUEUE]).running() as server:
        assert (
            await asyncio.to_thread(
                run, "node", "faults.js", server.url, "read", folder=application
            )
        ).strip() == "done"
    assert time.monotonic() - began >= 1


def test_both_clients_repeat_the_same_calls(installed_client: Path) -> None:
    written = [
        (CLIENTS / "typescript" / "src" / "retries.ts").read_text(),
        (installed_client / "statesvc_client" / "retries.py").read_text(),
    ]
    patterns = [
        re.search(r"REPEATABLE_POSTS = (?:/|re\.compile\(\s*r\")(.*\$)[/\"]", text)
        for text in written
    ]
    in_node, in_python = (found[1] for found in patterns if found)
    assert in_node.replace(r"\/", "/") == in_python


async def test_a_lost_answer_makes_no_second_effect(
    application: Path, service_maker: Callable[..., Awaitable[Service]], tmp_path: Path
) -> None:
    # the client's
    async def with_node(url: str, timeout: float, call: str, *told: str) -> str:  # noqa: ASYNC109
        command = ("node", "faults.js", url, call, str(timeout), BOOTSTRAP_KEY, *told)
        return (await asyncio.to_thread(run, *command, folder=application)).strip()

    async with told_service(service_maker(tmp_path, {})) as told:
        assert await effects(told, with_node) == ONCE


def test_it_verifies_what_the_service_signs(application: Path) -> None:
    body = '{"type": "shipment.delivered_for_test"}'

    def verdict(secret: str, stamp: datetime, sent: str) -> str:
        headers = {
            "Webhook-Id": "n1",
            "Webhook-Timestamp": str(int(stamp.timestamp())),
            "Webhook-Signature": Webhook(secret).sign("n1", stamp, body),
        }
        return run(
            "node", "signatures.js", SECRET, json.dumps(headers), sent, folder=application
        ).strip()

    now = datetime.now(UTC)
    assert verdict(SECRET, now, body) == "shipment.delivered_for_test"
    assert verdict(SECRET, now, body + " ") == "no signature is of this secret"
    assert verdict("whsec_YW5vdGhlciBzZWNyZXQ=", now, body) == "no signature is of this secret"
    assert "clock" in verdict(SECRET, now - timedelta(hours=1), body)


async def test_a_caller_submits_reads_and_follows(
    application: Path, service_maker: Callable[..., Awaitable[Service]], tmp_path: Path
) -> None:
    async with await service_maker(tmp_path, {}) as service:
        await service.start("api", "worker", "sealer")
        printed = await asyncio.to_thread(
            run,
            "node",
            "caller.js",
            service.api.url,
            BOOTSTRAP_KEY,
            BOOTSTRAP_KEY,
            folder=application,
        )
    way = ["picked_up", "in_transit", "delivered"]
    assert json.loads(printed) == {
        "verdicts": ["appended"] * 3,
        "history": way,
        "listed": ["delivered"],
        "streamed": way,
        "resumedAtSecond": True,
        "refused": [404, "not_found"],
    }


async def test_a_stream_that_is_cut_before_its_first_change_loses_nothing(
    application: Path, service_maker: Callable[..., Awaitable[Service]], tmp_path: Path
) -> None:
    async def follow(url: str) -> str:
        command = ("node", "follower.js", url, BOOTSTRAP_KEY)
        return (await asyncio.to_thread(run, *command, folder=application)).strip()

    async with await service_maker(tmp_path, {}) as service:
        await service.start("api", "worker", "sealer")
        assert not await is_lost(service, follow)
