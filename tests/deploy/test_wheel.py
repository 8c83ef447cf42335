"""The wheel: one top-level package, nothing missing, and it reads a payload as the tree does."""

import ast
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest

from deploy.packaging.wheel_hook import MOVED, rewritten
from tests.deploy.image_context import ROOT, copy_to

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
