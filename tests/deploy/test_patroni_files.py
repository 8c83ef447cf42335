"""The files of `deploy/patroni/`, as Patroni and HAProxy read them.

`tests/soak/test_patroni.py` has the cluster.
"""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from statesvc.database.postgres_programs import MAJOR, programs
from tests.world.programs import required, required_patroni

FILES = Path(__file__).parents[2] / "deploy" / "patroni"


def variables(name: str) -> dict[str, str]:
    lines = (FILES / name).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


@pytest.mark.usefixtures("own_processes")
def test_patroni_takes_its_file() -> None:
    command = [required_patroni(), "--validate-config", str(FILES / "patroni.yml")]
    environment = {
        **os.environ,
        **variables("node.env"),
        "PATRONI_POSTGRESQL_BIN_DIR": str(programs(MAJOR)),
    }
    checked = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


@pytest.mark.usefixtures("own_processes")
def test_haproxy_takes_its_file() -> None:
    haproxy = required("haproxy", "haproxy")
    nodes = {"BIND": "127.0.0.1", "NODE1": "10.0.0.1", "NODE2": "10.0.0.2", "NODE3": "10.0.0.3"}
    subprocess.run(
        [haproxy, "-c", "-f", FILES / "haproxy.cfg"],
        env={**os.environ, **nodes},
        check=True,
        timeout=60,
    )


def test_what_is_acknowledged_is_on_two_disks_and_no_more_than_one_writes() -> None:
    written = yaml.safe_load((FILES / "patroni.yml").read_text())
    cluster: dict[str, Any] = written["bootstrap"]["dcs"]
    assert (cluster["synchronous_mode"], cluster["synchronous_mode_strict"]) == (True, True)
    assert cluster["loop_wait"] + 2 * cluster["retry_timeout"] <= cluster["ttl"]
    settings = {**cluster["postgresql"]["parameters"], **written["postgresql"]["parameters"]}
    assert not settings.keys() & {
        "fsync",
        "synchronous_commit",
        "full_page_writes",
        "synchronous_standby_names",
    }
    assert all("trust" not in line for line in written["bootstrap"]["pg_hba"])


@pytest.mark.usefixtures("own_processes")
def test_the_unit_is_right(tmp_path: Path) -> None:
    unit = tmp_path / "patroni.service"
    unit.write_text(
        (FILES / "patroni.service")
        .read_text("utf-8")
        .replace("/opt/patroni/bin/patroni", "/bin/true")
    )
    subprocess.run([required("systemd-analyze", "systemd"), "verify", unit], check=True, timeout=60)
