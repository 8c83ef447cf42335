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


def explained(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    *options: str,
    body: bytes | None = None,
    carrier: str = "ups",
) -> str:
    file = tmp_path / "body.json"
    file.write_bytes(ups(UPS, UPS.scans) if body is None else body)
    assert main(["normalize", carrier, str(file), "--explain", *options]) == 0
    return capfd.readouterr().out


def test_an_explanation_says_what_came_from_where_and_what_was_ignored(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    printed = explained(tmp_path, capfd)
    rows = {line.split("  ", 1)[0]: line for line in printed.splitlines()}
    assert UPS.number in rows["number"]
    assert rows["number"].endswith("/trackingNumber")
    assert rows["status"].split()[1] == "delivered"
    assert rows["status"].endswith("/activityStatus/type, /activityStatus/code")
    assert "/localActivityTime" in rows["time"]
    assert "/gmtActivityTime" in rows["zone"]
    assert "- the row of the table: D,FS of ups_codes.csv" in printed
    assert "ignored, " in printed


def test_an_explanation_holds_nothing_personal_unless_it_is_asked_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for options in ((), ("--json",)):
        masked = explained(tmp_path, capfd, *options)
        assert str(UPS.signer) not in masked
        assert "(personal)" in masked
        assert str(UPS.signer) in explained(tmp_path, capfd, *options, "--personal")


def test_an_explanation_for_scripts_is_one_document(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(explained(tmp_path, capfd, "--json"))
    (event,) = document["events"]
    fields = {field["field"]: field for field in event["fields"]}
    assert fields["number"] == {"field": "number", "value": UPS.number, "from": ["/trackingNumber"]}
    assert fields["event_id"]["value"] == event["event_id"]
    assert document["is_faithful"]
    assert document["untried"] == 0
    assert document["ignored"]


def test_an_unknown_code_and_a_category_are_named_as_such(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    unknown = json.loads(ups(UPS, UPS.scans))
    unknown["activityStatus"] = {"type": "Q", "code": "Q9", "description": "Seen by a stranger"}
    assert "no table has this code" in explained(tmp_path, capfd, body=json.dumps(unknown).encode())
    category = b'{"shipments": [{"id": "1", "service": "express", "events": [{"timestamp": "2026-03-01T10:00:00", "statusCode": "transit"}]}]}'
    printed = explained(tmp_path, capfd, body=category, carrier="dhl_unified")
    assert "/shipments/0/events/0/statusCode" in printed


def test_an_explanation_gives_a_terminal_nothing_to_obey(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    hostile = json.loads(ups(UPS, UPS.scans)) | {"\x1b[2J": 1}
    hostile["activityLocation"]["city"] = "RENO\x1b]0;x\x07"
    printed = explained(tmp_path, capfd, body=json.dumps(hostile).encode())
    assert "\x1b" not in printed
    assert "\\u001b" in printed


def test_the_example_of_the_page_for_on_call_is_what_the_command_prints(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(__file__).parents[3]
    page = (root / "docs" / "operations.md").read_text("utf-8")
    command, _, shown = page.partition("$ statesvc ")[2].partition("```")[0].partition("\n")
    monkeypatch.chdir(root)
    assert main(command.split()) == 0
    assert capfd.readouterr().out == shown
