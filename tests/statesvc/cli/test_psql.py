"""psql with the service's own connection."""

import os
import subprocess
import sys

import pytest

from tests.world.database import Database


def _psql(database: Database, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "DATABASE_URL": database.service_dsn,
        "STATESVC_OWNER_URL": database.owner_dsn,
    }
    command = [sys.executable, "-m", "statesvc", "psql", *arguments]
    return subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.usefixtures("own_processes")
def test_it_logs_in_as_the_service_and_as_the_owner(database: Database) -> None:
    asked = ("-c", "SELECT current_user", "--", "-At")
    service, owner = _psql(database, *asked), _psql(database, "--owner", *asked)
    assert (service.returncode, owner.returncode) == (0, 0), service.stderr + owner.stderr
    assert service.stdout != owner.stdout


@pytest.mark.usefixtures("own_processes")
def test_a_statement_that_fails_is_a_failure_and_not_wrong_use(database: Database) -> None:
    assert _psql(database, "-c", "SELECT no_such_column").returncode == 1


@pytest.mark.usefixtures("own_processes")
def test_no_password_stands_in_the_list_of_processes(database: Database) -> None:
    address = database.service_dsn.replace("postgresql://", "").split("@")[0]
    shown = _psql(database, "-c", "\\! ps -ww -o args= -p $PPID", "--", "-At").stdout
    assert "psql" in shown
    password = address.partition(":")[2]
    assert not password or password not in shown


@pytest.mark.usefixtures("own_processes")
def test_the_superuser_is_known_of_the_embedded_server_alone(database: Database) -> None:
    refused = _psql(database, "--superuser", "-c", "SELECT 1")
    assert refused.returncode == 1
    assert "the superuser of a server of your own is not among the settings" in refused.stderr
