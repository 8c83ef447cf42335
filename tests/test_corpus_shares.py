import json
from typing import Any

import pytest

from tests.corpus_shares import CORPORA, Shares, shares, shares_of, stated, table
from tests.events.carriers.test_corpus import NO_CORPUS

EVENT: dict[str, Any] = {
    "tracking_number": "1",
    "raw_code": "OUTDLV",
    "status": "out_for_delivery",
    "occurred_at_raw": None,
}


def body(code: str = "OUTDLV", *, name: str = "shipmentStatus") -> bytes:
    step = {
        "strAction": code,
        "strActionDesc": "-",
        "strActionDate": "05022026",
        "strActionTime": "0900",
    }
    return json.dumps({"shipment": {"strShipmentNo": "1"}, name: step}).encode()


@pytest.mark.parametrize(
    ("printed", "expected", "verdict"),
    [
        (body(), [EVENT], "right"),
        (body("NEVERSEEN"), [EVENT | {"raw_code": None}], "reported"),
        (body(name="steps"), [EVENT], "reported"),
        (b'{"shipment": {"strShipmentNo": "1"}, "shipmentStatus": []}', [EVENT], "silent"),
        (b"<html/>", [EVENT], "reported"),
        (body(), [EVENT | {"status": "delivered"}], "silent"),
        (body(), [], "silent"),
    ],
)
def test_an_event_is_right_told_or_silent(
    printed: bytes, expected: list[dict[str, Any]], verdict: str
) -> None:
    found = shares_of("dtdc", printed, expected)
    assert (found.right, found.reported, found.silent) == tuple(
        int(each == verdict) for each in ("right", "reported", "silent")
    )


def test_the_page_says_what_is_true_or_less() -> None:
    if not all((corpus / "expected.json").is_file() for corpus in CORPORA):
        pytest.skip(NO_CORPUS)
    said = stated()
    assert shares().keys() == said.keys() - {"all"}
    worse = {
        name: (found, said[name])
        for name, found in shares().items()
        if found.events != said[name][0]
        or found.right < said[name][1]
        or found.silent > said[name][2]
    }
    assert worse == {}, "python -m tests.corpus_shares --write"


def test_the_table_has_a_sum() -> None:
    printed = table(
        {
            "a": Shares(payloads=1, events=4, right=3, silent=1),
            "b": Shares(payloads=1, events=4, right=4),
        }
    )
    assert printed.splitlines()[2:4] == [
        "| **all** | 2 | 8 | 7 (87.5%) | 0 | 1 | 0 | 0 |",
        "| a | 1 | 4 | 3 (75.0%) | 0 | 1 | 0 | 0 |",
    ]
