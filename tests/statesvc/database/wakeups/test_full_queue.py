"""A NOTIFY queue that a listener of another database keeps full: what was done took effect, and
`status` names the session.
"""

import json
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from statesvc.cli import main
from statesvc.database.embedded import EmbeddedServer


def notify_many(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for number in range(1000):
            connection.execute("SELECT pg_notify('news', %s || repeat('x', 7900))", (number,))


@pytest.mark.usefixtures("own_processes")
def test_a_full_notify_queue_fails_no_command_and_its_holder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STATESVC_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("DATABASE_URL", raising=False)
    server = EmbeddedServer(
        tmp_path / "data", overrides={"fsync": "off", "max_notify_queue_pages": "64"}
    )
    dsns = server.start()
    assert dsns.superuser is not None
    try:
        assert main(["migrate"]) == 0
        with psycopg.connect(make_conninfo(dsns.superuser, dbname="postgres")) as holder:
            holder.execute("LISTEN news")
            holder.commit()
            holder.execute("SELECT 1")
            with pytest.raises(psycopg.errors.ProgramLimitExceeded):
                notify_many(dsns.superuser)
            capsys.readouterr()
            assert main(["rollout", "hold", "ups", "--why", "test"]) == 0
            assert "is noticed within half a minute" in capsys.readouterr().err
            assert main(["status", "--json"]) == 1
            found = {one["page"]: one for one in json.loads(capsys.readouterr().out)["troubles"]}
            queue = found[next(page for page in found if page and "NotifyQueue" in page)]
            assert queue["urgency"] == "now"
            assert (
                f"process {holder.info.backend_pid} of postgres in database postgres"
                in queue["text"]
            )
    finally:
        server.stop()
