"""A database of every release becomes one of this code: nothing of it is lost, and
what was proved is proved.
"""

import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection

from statesvc.database.migrator import migrate
from tests.acceptance.processes import Service, running
from tests.acceptance.stories import ups_alert
from tests.migrations.kept_release import DIGESTS, KeptRelease, kept_releases
from tests.world.database import Database

ANEW = "until the release is out: python -m tests.acceptance.keep_release"


def test_the_numbered_files_of_a_release_are_never_edited() -> None:
    for line in DIGESTS.read_text().splitlines():
        digest, _, name = line.partition("  ")
        assert hashlib.sha256((DIGESTS.parent / name).read_bytes()).hexdigest() == digest, (
            f"{name} was edited; {ANEW}"
        )


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize("kept", kept_releases(), ids=lambda kept: kept.folder.name)
async def test_a_database_of_a_release_is_upgraded_and_holds_what_it_held(
    kept: KeptRelease, bare_database: Database, tmp_path: Path
) -> None:
    async with await AsyncConnection.connect(bare_database.owner_dsn, autocommit=True) as owner:
        await owner.execute(kept.dump.encode())
    await migrate(bare_database.owner_dsn, bare_database.service_dsn)
    service = Service(
        service_dsn=bare_database.service_dsn,
        owner_dsn=bare_database.owner_dsn,
        folder=tmp_path,
        settings={},
        forks=True,
    )
    # alone: the others observe what became of the parcels since, such as one that is overdue now
    async with running(service, "api"):
        (without_addons,) = await service.start("api", STATESVC_ADDONS="")
        for path, (status, answer) in kept.answers.items():
            for api in (service.api, without_addons):
                async with service.session.get(f"{api.url}{path}") as response:
                    now = await response.json()
                    assert (response.status, list(lost(answer, now))) == (status, []), path
        await service.start("worker", "sealer")
        exit_code, output, errors = await service.run("verify", "--checkpoint", str(kept.head))
        assert exit_code == 0, output + errors
        # it goes on where it was
        path = next(
            path
            for path in kept.answers
            if path.startswith("/v1/shipments/ups/") and path.endswith("/history")
        )
        await service.webhook(
            "ups",
            ups_alert(path.split("/")[4], "I/AR", day=9, minute=601, text="After the upgrade").body,
        )
        await service.drained()
        assert len((await service.get(path))[1]["items"]) == len(kept.answers[path][1]["items"]) + 1


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize("kept", kept_releases(), ids=lambda kept: kept.folder.name)
def test_evidence_of_a_release_is_checked_by_the_verifier_in_its_own_zip(
    kept: KeptRelease, tmp_path: Path
) -> None:
    with zipfile.ZipFile(kept.evidence) as bundle:
        bundle.extractall(tmp_path)
    command: list[str | Path] = [
        sys.executable,
        "-I",
        "verify_evidence.py",
        ".",
        "--key",
        kept.keys,
    ]
    checked = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def lost(before: Any, now: Any, at: str = "") -> Iterator[str]:
    """Yield where an answer no longer says what it said; it may say more."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name, value in before.items():
            if name not in now:
                yield f"{at}/{name}: gone"
            else:
                yield from lost(value, now[name], f"{at}/{name}")
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for place, (one, other) in enumerate(zip(before, now, strict=True)):
            yield from lost(one, other, f"{at}/{place}")
    elif before != now:
        yield f"{at}: {before!r} -> {now!r}"
