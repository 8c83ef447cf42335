"""A row that is written into a carrier's table is read by its normalizer, for every
carrier that has such rows.
"""

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from events.carriers import CARRIERS
from events.code_tables import TableRow, row_of, shipped_meaning
from events.event import Raw

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
        if (row := row_of(carrier_id, raw, None)) is not None
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


def test_every_row_of_every_table_that_a_code_names_is_found_and_says_what_is_read() -> None:
    found = 0
    for carrier_id, carrier in CARRIERS.items():
        for code in ("DL", "OD", "DELIVERED", "delivered", "1", "01", "OK"):
            row = row_of(carrier_id, Raw(code=code), None)
            if row is not None and (said := shipped_meaning(row)) is not None:
                read = carrier.reread(Raw(code=code))
                assert read in {None, said}, (carrier_id, code)
                found += read is not None
    assert found > 10


def test_texts_go_where_a_table_has_them() -> None:
    text = "Handed  to the Robot -"
    for carrier_id, raw, key in (
        ("australiapost", Raw(), ("event", "handed to the robot -")),
        ("canadapost", Raw(code="1234"), ("1234", "handed to the robot -")),
        ("purolator", Raw(code="Other"), ("Other", "handed to the robot")),
        ("laposte", Raw(code="ZZ9"), ("event", "ZZ9", "handed to the robot -")),
    ):
        row = row_of(carrier_id, raw, text)
        assert row is not None
        assert row.key == key
    assert row_of("usps", Raw(code="Handed to the robot"), None) == TableRow(
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
        pytest.param("purolator", Raw(code="Other"), None, id="the table distinguishes texts"),
    ],
)
def test_a_code_without_a_row_of_its_own_has_none(
    carrier_id: str, raw: Raw, text: str | None
) -> None:
    assert row_of(carrier_id, raw, text) is None
