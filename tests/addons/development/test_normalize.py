import json
from datetime import datetime
from pathlib import Path

import pytest

from statesvc.cli import main

FIXTURES = Path(__file__).parents[2] / "events" / "carriers" / "fixtures"
ALERT = FIXTURES / "ups" / "track_alert_delivered_signed.json"
NUMBER = "1ZTEST000300000011"


def test_a_payload_is_printed_as_one_event_a_line_with_its_personal_fields(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    assert main(["normalize", "ups", str(ALERT)]) == 0
    (line,) = capfdbinary.readouterr().out.splitlines()
    event = json.loads(line)
    assert event["tracking_number"] == NUMBER
    assert (event["kind"], event["status"], event["carrier_code"]) == ("scan", "delivered", "D/FS")
    assert event["signed_by"] == "MUSTER"
    assert event["location"]["country"] == "US"
    assert datetime.fromisoformat(event["occurred_at"]) == datetime.fromisoformat(
        "2026-03-03T22:30:00+00:00"
    )


def test_a_history_is_printed_scan_by_scan(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    assert main(["normalize", "usps", str(FIXTURES / "usps" / "web_tools.json")]) == 0
    assert len(capfdbinary.readouterr().out.splitlines()) == 4


def test_a_number_that_the_message_does_not_name_is_null(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    alert = json.loads(ALERT.read_bytes())
    del alert["trackingNumber"]
    file = tmp_path / "body.json"
    file.write_text(json.dumps(alert))
    assert main(["normalize", "ups", str(file)]) == 0
    assert json.loads(capfdbinary.readouterr().out)["tracking_number"] is None


def test_a_body_that_cannot_be_read_names_its_cause(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "body.json"
    file.write_bytes(ALERT.read_bytes()[:-10])
    assert main(["normalize", "ups", str(file)]) == 1
    printed = capfd.readouterr()
    assert printed.err.startswith("unreadable: ")
    assert printed.out == ""
    assert NUMBER not in printed.err


def test_an_unknown_carrier_or_file_is_wrong_use(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["normalize", "nobody", "-"]) == 2
    assert main(["normalize", "ups", str(tmp_path / "nothing")]) == 2
    assert "Traceback" not in capfd.readouterr().err
