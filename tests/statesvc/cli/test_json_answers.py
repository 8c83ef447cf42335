"""What acts says for scripts what it did, as what only looks does."""

from pathlib import Path

import pytest
from psycopg import AsyncConnection

from tests.world.shell import Shell


async def test_each_act_answers_with_a_document(
    here: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("STATESVC_ARCHIVE_DIR", str(tmp_path))
    turned = ("--stable", "old@1", "--candidate", "1", "--percent", "5")
    for command, answer in (
        (
            ("carriers", "quota", "ups", "--weight", "2", "--why", "test"),
            {"carrier_id": "ups", "weight": 2.0, "in_flight_max": None},
        ),
        (
            ("rollout", "set", "ups", *turned, "--why", "test"),
            {"carrier_id": "ups", "percent": 5, "stable": "old@1"},
        ),
        (("migrate", "--check"), {"applied": [], "pending": []}),
        (("archive", "run"), {"archived": [], "bodies": 0, "refused": None}),
        (("archive", "verify"), {"files": 0, "months": 0, "faults": {}}),
        (("archive", "log", "--hot-months", "1", "--no-wait"), {"archived": []}),
    ):
        assert answer.items() <= (await here.json(*command)).items(), command
    listed = {each["carrier_id"]: each["weight"] for each in await here.json("carriers")}
    assert (listed["ups"], listed["fedex"]) == (2.0, 1.0)


async def test_status_names_the_database_once(service: AsyncConnection[None], here: Shell) -> None:
    name = service.info.dbname
    # nothing runs here, which needs a human
    out, err = await here.printed("status", exit_code=1)
    assert (out.count(name), err) == (1, "")
    _, err = await here.printed("queue")
    assert name in err
