"""What an author of a normalizer runs: `statesvc normalize`, and a draft from samples that nothing here reads."""

import importlib
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

import pytest

from events.carriers.installed import InstalledCarrier
from statesvc.cli import main

HISTORY = json.dumps(
    {
        "sent": "2026-03-02T10:00:00",
        "result": {
            "consignments": [
                {
                    "waybill": "AC10000001",
                    "weight": 2,
                    "history": [
                        {"when": {"scanDate": "02/03/2026 09:15"}, "st": "x", "statusCode": "70"}
                        | {"statusText": "Delivered", "city": "Reno"},
                        {"when": {"scanDate": "28/02/2026 18:00"}, "st": "x", "statusCode": "10"}
                        | {"statusText": "Waits for its papers", "city": "Reno"},
                    ],
                }
            ]
        },
    }
)
XML = """<answer><parcel number="AC10000001">
<event code="70" date="2026-03-02T09:15:00+01:00"><description>Delivered</description></event>
<event code="10" date="2026-02-28T18:00:00+01:00"><description>Waits</description></event>
</parcel></answer>"""
FORM = urlencode(
    {
        "sign": "0a",
        "data": json.dumps(
            {
                "orderNo": "AC10000001",
                "logs": {
                    "0": {"status": "delivered", "time": 1772442900000},
                    "1": {"status": "papers", "time": 1772301600000},
                },
            }
        ),
    }
)


@pytest.mark.parametrize(
    ("body", "codes", "zone_is_known"),
    [
        (HISTORY, ["70", "10"], False),
        (XML, ["70", "10"], True),
        (FORM, ["delivered", "papers"], True),
    ],
    ids=["json", "xml", "form"],
)
def test_a_draft_reads_number_time_code_and_the_status_of_a_known_phrase(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    body: str,
    codes: list[str],
    *,
    zone_is_known: bool,
) -> None:
    tmp_path.joinpath("push").write_text(body)
    folder = tmp_path / "acme-statesvc"
    assert main(["carriers", "draft", "acme", str(tmp_path / "push"), "--into", str(folder)]) == 0
    doubts = capsys.readouterr().out
    assert f"{codes[1]!r}: kit.UNMAPPED" in doubts
    assert ("default_zone" in doubts) is not zone_is_known

    monkeypatch.syspath_prepend(folder)
    for name in ("acme", "test_acme"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    acme, test = importlib.import_module("acme"), importlib.import_module("test_acme")
    test.test_a_sample_is_read("push")
    assert isinstance(acme.ACME, InstalledCarrier)
    read = acme.normalize(body.encode(), datetime(2026, 3, 3, tzinfo=UTC))
    assert [
        (each.tracking_number, each.raw.code, each.status and each.status.value)
        for each in read.readings
    ] == [("AC10000001", codes[0], "delivered"), ("AC10000001", codes[1], None)]
    assert [f"{each.time.instant:%d %H:%M}" for each in read.readings] == [
        "02 09:15",
        "28 18:00",
    ]


def test_an_element_that_is_none_beside_events_that_are_read_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.joinpath("push").write_text(HISTORY)
    folder = tmp_path / "acme-statesvc"
    assert main(["carriers", "draft", "acme", str(tmp_path / "push"), "--into", str(folder)]) == 0
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "acme", raising=False)
    body = HISTORY.replace('"consignments": [', '"consignments": [7, {"waybill": "AC2"}, ')
    read = importlib.import_module("acme").normalize(body.encode(), datetime.now(UTC))
    assert len(read.readings) == 2
    assert [each.pointer for each in read.rejections] == [
        "/result/consignments/0",
        "/result/consignments/1/history",
    ]


@pytest.mark.parametrize(
    ("carrier", "body", "code"),
    [
        ("ups", "{}", 2),
        ("no-id", "{}", 2),
        ("acme", '{"number": "AC1"}', 1),
        ("acme", "UNA:+.? '", 1),
    ],
)
def test_what_cannot_be_drafted_is_a_sentence_and_no_folder(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    carrier: str,
    body: str,
    code: int,
) -> None:
    tmp_path.joinpath("push").write_text(body)
    folder = tmp_path / "out"
    assert (
        main(["carriers", "draft", carrier, str(tmp_path / "push"), "--into", str(folder)]) == code
    )
    assert capsys.readouterr().err.count("\n") == 1
    assert not folder.exists()


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
