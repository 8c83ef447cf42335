"""The version stands in `statesvc/__init__.py`; every other place that names it agrees."""

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Final

import pytest
import yaml

from statesvc import __version__

ROOT: Final = Path(__file__).parents[2]
NAMED: Final = re.compile(r"statesvc(?:-client|_client|-deploy)?[-:/](\d+\.\d+\.\d+)\b")
"""A file of a release, an image, or a client that says who it is."""


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    return [ROOT / name for name in listed if not name.startswith(("CHANGELOG.md", "tests/"))]


def test_every_file_and_image_is_named_with_the_version_of_the_service() -> None:
    named = {}
    for path in tracked():
        found = set(NAMED.findall(path.read_text("utf-8", errors="replace")))
        if found:
            named[path.relative_to(ROOT).as_posix()] = found
    assert {name: found for name, found in named.items() if found != {__version__}} == {}
    assert {
        "deploy/docker/Dockerfile",
        "deploy/docker/compose.yml",
        "docs/install.md",
    } <= named.keys()


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("deploy/docker/Dockerfile", r'org\.opencontainers\.image\.version="(.+?)"'),
        ("CHANGELOG.md", r"^## (?:\[Unreleased\] )?(\d\S+)"),
        ("clients/python/src/statesvc_client/aio/client.py", r'"statesvc-client/(.+?)"'),
    ],
)
def test_what_is_written_by_hand_has_the_version(name: str, pattern: str) -> None:
    found = re.search(pattern, (ROOT / name).read_text("utf-8"), re.MULTILINE)
    assert found is not None
    assert found[1] == __version__


def test_clients_manifests_and_the_openapi_document_have_the_version() -> None:
    clients = ROOT / "clients"
    (image,) = yaml.safe_load((ROOT / "deploy/kubernetes/kustomization.yaml").read_text("utf-8"))[
        "images"
    ]
    assert {
        "python": tomllib.loads((clients / "python/pyproject.toml").read_text("utf-8"))["project"][
            "version"
        ],
        "typescript": json.loads((clients / "typescript/package.json").read_text("utf-8"))[
            "version"
        ],
        "openapi": json.loads((clients / "openapi.json").read_text("utf-8"))["info"]["version"],
        "kustomization": image["newTag"],
    } == dict.fromkeys(("python", "typescript", "openapi", "kustomization"), __version__)
