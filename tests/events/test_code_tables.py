"""Tables of codes, and proposals for codes and texts that are not in them."""

import csv
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from events.carriers import CARRIERS
from events.code_tables import TableRow, printed_row
from events.event import Raw
from events.spelling import is_short, short, sought_forms
from events.text_proposals import proposed
from events.vocabulary import Reason, Status
from tests.corpus_shares import CORPORA, NO_CORPUS

ROOT = Path(__file__).parents[2]
CODES = (Raw(code="ZzTop9"), Raw(type="Zt", code="ZzTop9"), Raw(code="ZzTop9", reason="Zr"))
READ = """
import json, sys
from events.carriers import CARRIERS
from events.event import Raw
for carrier_id, words in json.load(sys.stdin):
    meaning = CARRIERS[carrier_id].reread(Raw(**words))
    print(carrier_id, json.dumps(words), meaning and meaning.status)
"""


def words(raw: Raw) -> dict[str, str | None]:
    return {"type": raw.type, "code": raw.code, "reason": raw.reason}


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize("raw", CODES, ids=["code", "type and code", "code and reason"])
def test_a_row_of_a_table_is_read_as_it_says(raw: Raw, tmp_path: Path) -> None:
    rows = {
        carrier_id: row
        for carrier_id in CARRIERS
        if (row := printed_row(carrier_id, raw, None)) is not None
    }
    assert rows
    shutil.copytree(
        ROOT / "events", tmp_path / "events", ignore=shutil.ignore_patterns("__pycache__")
    )
    for row in rows.values():
        with (tmp_path / "events" / "carriers" / row.table).open("a") as table:
            csv.writer(table).writerow((*row.key, "scan", "lost", ""))
    asked = json.dumps([[carrier_id, words(raw)] for carrier_id in rows])
    read = subprocess.run(
        [sys.executable, "-c", READ],
        cwd=tmp_path,
        input=asked,
        text=True,
        capture_output=True,
        check=True,
    ).stdout
    wrong = [line for line in read.splitlines() if not line.endswith(" lost")]
    assert wrong == [], "say in events/code_tables.py how the tables of these carriers spell a code"


def test_texts_go_where_a_table_has_them() -> None:
    text = "Handed  to the Robot -"
    for carrier_id, raw, key in (
        ("australiapost", Raw(), ("event", "handed to the robot -")),
        ("canadapost", Raw(code="1234"), ("1234", "handed to the robot -")),
        ("purolator", Raw(code="Other"), ("Other", "handed to the robot")),
        ("laposte", Raw(code="ZZ9"), ("event", "ZZ9", "handed to the robot -")),
    ):
        row = printed_row(carrier_id, raw, text)
        assert row is not None
        assert row.key == key
    assert printed_row("usps", Raw(code="Handed to the robot"), None) == TableRow(
        "usps_codes.csv", ("", "handed to the robot")
    )


@pytest.mark.parametrize(
    ("carrier_id", "raw", "text"),
    [
        pytest.param("canonical", Raw(code="X"), None, id="the carrier has no table"),
        pytest.param("dhl_unified", Raw(code="X"), None, id="the table asks for a service"),
        pytest.param("ups", Raw(type="X", code="9Z"), "Some text", id="no column for the text"),
        pytest.param("royalmail", Raw(type="X", code="9Z"), None, id="no column for the type"),
        pytest.param("dhl_parcel_de", Raw(code="ZZ"), None, id="the table asks for the type"),
        pytest.param("dcsa", Raw(type="TRANSPORT", code="ZZZZ"), None, id="more decides"),
    ],
)
def test_a_code_without_a_row_of_its_own_has_none(
    carrier_id: str, raw: Raw, text: str | None
) -> None:
    assert printed_row(carrier_id, raw, text) is None


RIGHT_MIN = 0.9
OF_TEXTS_MIN = 0.7


@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [
        *[
            ("Delivered", Status.DELIVERED, None),
            ("Zugestellt.", Status.DELIVERED, None),
            ("The parcel was <b>delivered</b> at the back door", Status.DELIVERED, None),
            ("Delivery attempted, nobody at home", Status.DELIVERY_ATTEMPTED, None),
            ("Could not be delivered", Status.DELIVERY_ATTEMPTED, None),
            ("Delivered back to the shipper", Status.RETURNED, None),
            ("Your parcel is out for delivery today", Status.OUT_FOR_DELIVERY, None),
            ("Ready for collection at the parcel shop", Status.AVAILABLE_FOR_PICKUP, None),
            ("The package is damaged", Status.EXCEPTION, Reason.DAMAGED),
            ("Arrived at sort facility", Status.IN_TRANSIT, None),
            ("Label created", Status.INFO_RECEIVED, None),
        ],
        *(
            (text, None, None)
            for text in [
                None,
                "",
                "Something new",
                "Will be delivered tomorrow",
                "Your parcel is expected to be delivered soon",
                "DLVRD7",
            ]
        ),
    ],
)
def test_a_text_proposes_what_such_texts_mean_and_nothing_where_it_is_not_clear(
    text: str | None, status: Status | None, reason: Reason | None
) -> None:
    found = proposed(text)
    assert (found and (found.meaning.status, found.meaning.reason)) == (
        None if status is None else (status, reason)
    )


def test_a_proposal_quotes_no_word_that_is_not_ours() -> None:
    found = proposed("Returned by J. Miller to sender")
    assert found is not None
    assert "Miller" not in found.why
    named = proposed("Signed by J. MILLER, delivered")
    assert named is not None
    assert "MILLER" not in named.why


def test_proposals_for_the_texts_of_the_corpora_are_nearly_always_right() -> None:
    texts = {
        (event["description"], event["status"])
        for corpus in CORPORA
        if (corpus / "expected.json").is_file()
        for document in json.loads((corpus / "expected.json").read_text("utf-8"))
        for event in document["events"]
        if event.get("description") and event.get("status") in {status.value for status in Status}
    }
    if not texts:
        pytest.skip(NO_CORPUS)
    made = [
        (found.meaning.status, status)
        for text, status in texts
        if (found := proposed(text)) is not None
    ]
    assert len(made) / len(texts) >= OF_TEXTS_MIN
    assert sum(found == status for found, status in made) / len(made) >= RIGHT_MIN


DIGESTS = [bytes(32), bytes([255] * 32), *(hashlib.sha256(bytes([n])).digest() for n in range(50))]


def test_a_text_is_that_of_a_digest_exactly_when_it_was_written_so() -> None:
    for digest in DIGESTS:
        text = short(digest)
        assert is_short(text, digest), digest
        for place in range(len(text)):
            for other in "a7_ +-A089\u0663\u00e9\0":
                changed = text[:place] + other + text[place + 1 :]
                assert is_short(changed, digest) == (changed == text), digest
        for changed in (
            "",
            text[:-1],
            text + "a",
            "a" + text,
            text.upper(),
            f" {text}",
            f"{text}\n",
        ):
            assert is_short(changed, digest) == (changed == text), digest


@pytest.mark.parametrize(
    ("sought", "number"),
    [
        ("(420)97201(9400111202555842332669)", "420972019400111202555842332669"),
        ("9611020987654312345672", "987654312345672"),
        ("1001921334250001000300779017972697", "779017972697"),
        ("000123456789012", "123456789012"),
        ("00000000123456789012", "123456789012"),
        ("(00) 340434161095002710", "340434161095002710"),
        ("340434161095002710", "00340434161095002710"),
    ],
)
def test_a_barcode_is_a_spelling_of_the_number_on_it(sought: str, number: str) -> None:
    assert number in sought_forms(sought)
