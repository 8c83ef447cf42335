"""The wheel, and the files for Patroni."""

import ast
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any, Final
from zipfile import ZipFile

import pytest
import yaml

from deploy.packaging.wheel_hook import MOVED, rewritten
from statesvc.database.postgres_programs import MAJOR, programs
from tests.deploy.image_context import ROOT, copy_to
from tests.world.programs import required, required_patroni

PAYLOAD: Final = ROOT / "tests/events/carriers/fixtures/ups/track_alert_delivered_signed.json"
RUN: Final = (
    "import sys; sys.path[:0] = sys.argv[1:3]; from statesvc.cli import main;"
    " sys.exit(main(sys.argv[3:]))"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from what the image is built from, and unpack it."""
    folder = tmp_path_factory.mktemp("wheel")
    copy_to(folder / "src")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=folder / "src", check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    unpacked = folder / "unpacked"
    with ZipFile(built) as archive:
        archive.extractall(unpacked)
    return unpacked


@pytest.mark.usefixtures("own_processes")
def test_it_has_one_package_and_no_import_of_another_of_ours(wheel: Path) -> None:
    assert [path.name for path in wheel.iterdir() if not path.name.endswith(".dist-info")] == [
        "statesvc"
    ]
    imports = (
        node.module.partition(".")[0]
        for path in wheel.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
    )
    assert set(MOVED).isdisjoint(imports)


@pytest.mark.usefixtures("own_processes")
def test_it_has_every_file_that_is_committed(wheel: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "statesvc", *MOVED],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    places = [name if name.startswith("statesvc/") else f"statesvc/{name}" for name in listed]
    pages = [f"statesvc/runbook/{page.name}" for page in (ROOT / "docs" / "runbook").iterdir()]
    assert [place for place in (*places, *pages) if not (wheel / place).is_file()] == []


@pytest.mark.usefixtures("own_processes")
def test_it_reads_a_payload_without_the_tree(wheel: Path, tmp_path: Path) -> None:
    """Isolated, without `site`: an editable installation would bring the tree back."""
    command = ["normalize", "ups", str(PAYLOAD)]
    libraries = sysconfig.get_path("purelib")
    found = subprocess.run(
        [sys.executable, "-I", "-S", "-c", RUN, wheel, libraries, *command],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    tree = subprocess.run(
        [sys.executable, "-m", "statesvc", *command],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert (found.stdout, found.stderr) == (tree.stdout, "")
    assert "1ZTEST000300000011" in found.stdout


def test_imports_and_files_of_the_moved_packages_get_their_new_names() -> None:
    source = (
        "from events.entry.kinds import Entry\nfrom . import events\nif True:\n    from migrations"
        " import x\ndata = files('events')\n"
    )
    assert (
        rewritten(source, "m.py")
        == "from statesvc.events.entry.kinds import Entry\nfrom . import events\nif True:\n    from"
        " statesvc.migrations import x\ndata = files('statesvc.events')\n"
    )


def test_text_and_names_that_only_look_like_them_stay() -> None:
    source = (
        '"""é\nfrom events import x\n"""\nfrom eventsource import y\nevents = {"events":'
        ' files("statesvc.events")}\n'
    )
    assert rewritten(source, "m.py") == source


def test_an_import_that_cannot_be_renamed_fails_the_build() -> None:
    with pytest.raises(ValueError, match=r"m\.py:2: write"):
        rewritten("\nimport events.entry.kinds\n", "m.py")


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
