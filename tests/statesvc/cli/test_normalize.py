import json
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from statesvc.addons.demo.dialects import ups, usps
from statesvc.addons.demo.parcels import ParcelStep, invent
from statesvc.cli import main

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
UPS = next(
    parcel
    for seed in range(99)
    if (parcel := invent(Random(seed), "ups", NOW)).scans[-1].step is ParcelStep.DELIVERED
)


def test_a_payload_is_printed_as_one_event_a_line_with_its_personal_fields(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    file = tmp_path / "body.json"
    file.write_bytes(ups(UPS, UPS.scans))
    assert main(["normalize", "ups", str(file)]) == 0
    (line,) = capfdbinary.readouterr().out.splitlines()
    event = json.loads(line)
    assert event["tracking_number"] == UPS.number
    assert (event["kind"], event["status"], event["carrier_code"]) == ("scan", "delivered", "D/FS")
    assert event["signed_by"] == UPS.signer
    assert event["location"]["country"] == "US"
    assert datetime.fromisoformat(event["occurred_at"]) == UPS.scans[-1].at


def test_a_history_is_printed_scan_by_scan(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    parcel = invent(Random(3), "usps", NOW)
    file = tmp_path / "body.xml"
    file.write_bytes(usps(parcel, parcel.scans))
    assert main(["normalize", "usps", str(file)]) == 0
    assert len(capfdbinary.readouterr().out.splitlines()) == len(parcel.scans)


def test_a_number_that_the_message_does_not_name_is_null(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    alert = json.loads(ups(UPS, UPS.scans))
    del alert["trackingNumber"]
    file = tmp_path / "body.json"
    file.write_text(json.dumps(alert))
    assert main(["normalize", "ups", str(file)]) == 0
    assert json.loads(capfdbinary.readouterr().out)["tracking_number"] is None


def test_a_body_that_cannot_be_read_names_its_cause(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "body.json"
    file.write_bytes(ups(UPS, UPS.scans)[:-10])
    assert main(["normalize", "ups", str(file)]) == 1
    printed = capfd.readouterr()
    assert printed.err.startswith("unreadable: ")
    assert printed.out == ""
    assert UPS.number not in printed.err


def test_an_unknown_carrier_or_file_is_wrong_use(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["normalize", "nobody", "-"]) == 2
    assert main(["normalize", "ups", str(tmp_path / "nothing")]) == 2
    assert "Traceback" not in capfd.readouterr().err
