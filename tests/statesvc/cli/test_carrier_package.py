"""The package of docs/carrier-package.md, as it stands there, beside ours; and
packages that cannot be used.
"""

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import Final

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_processes")]

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = ROOT / "docs" / "carrier-package.md"
BODY: Final = json.dumps(
    {"number": "AC1", "at": "2026-03-01T14:05:00-05:00", "code": "D", "city": "Reno"}
)


def install(folder: Path, program: str, *points: str) -> Path:
    """Put a package there as an installer does: its module, and what it says of itself."""
    folder.joinpath("acme_statesvc.py").write_text(program)
    about = folder / "acme_statesvc-1.0.dist-info"
    about.mkdir()
    about.joinpath("METADATA").write_text(
        "Metadata-Version: 2.1\nName: acme-statesvc\nVersion: 1.0\n"
    )
    about.joinpath("entry_points.txt").write_text("\n".join(["[statesvc.carriers]", *points, ""]))
    return folder


def page() -> tuple[str, list[str]]:
    text = PAGE.read_text("utf-8")
    (program,) = re.findall(r"^```py\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    points = re.findall(r'^"?([^"\n=]+?)"? = "(acme_statesvc:\w+)"$', text, re.MULTILINE)
    assert len(points) == 2
    return program, [f"{name} = {value}" for name, value in points]


async def statesvc(folder: Path, *arguments: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "statesvc", *arguments),
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"},
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode, output.decode(), errors.decode()


def version(carrier_id: str, name: str) -> str:
    return (
        "from statesvc.carrier_package import InstalledVersion\n"
        f"ACME = InstalledVersion(carrier_id={carrier_id!r}, version={name!r}, normalize=print)"
    )


async def test_a_package_brings_a_carrier_and_a_version_of_another(tmp_path: Path) -> None:
    program, points = page()
    install(tmp_path, program, *points)
    tmp_path.joinpath("push.json").write_text(BODY)
    for arguments in (
        ("normalize", "acme", "push.json"),
        ("normalize", "ups", "push.json", "--version", "acme-1"),
    ):
        code, output, errors = await statesvc(tmp_path, *arguments)
        assert (code, errors) == (0, "")
        event = json.loads(output)
        assert (event["tracking_number"], event["status"], event["carrier_code"]) == (
            "AC1",
            "delivered",
            "D",
        )
    code, output, _ = await statesvc(tmp_path, "carriers", "--json")
    assert code == 0
    assert "acme" in {carrier["carrier_id"] for carrier in json.loads(output)}


@pytest.mark.parametrize(
    ("program", "point", "why"),
    [
        (
            "raise RuntimeError('no licence')",
            "acme = acme_statesvc:ACME",
            "it does not load: RuntimeError: no licence",
        ),
        (
            "",
            "acme = acme_statesvc:ACME",
            "it does not load: AttributeError: module 'acme_statesvc' has no attribute 'ACME'",
        ),
        (
            "ACME = 1",
            "acme = acme_statesvc:ACME",
            "it is of type int, no InstalledCarrier or InstalledVersion",
        ),
        (
            version("ups", "1"),
            "mine = acme_statesvc:ACME",
            "ups has a version '1' already",
        ),
        (
            version("none", "a"),
            "mine = acme_statesvc:ACME",
            "there is no carrier 'none' to bring a version of",
        ),
    ],
)
async def test_a_package_that_cannot_be_used_is_said_and_nothing_goes_on_without_it(
    tmp_path: Path, program: str, point: str, why: str
) -> None:
    install(tmp_path, program, point)
    tmp_path.joinpath("push.json").write_text(BODY)
    code, output, errors = await statesvc(tmp_path, "normalize", "ups", "push.json")
    assert (code, output) == (2, "")
    assert (
        errors
        == f"statesvc: entry point {point} of acme-statesvc 1.0 (statesvc.carriers): {why}. Mend or"
        " uninstall it\n"
    )
