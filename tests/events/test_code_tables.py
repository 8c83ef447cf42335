"""A row that is written into a carrier's table is read by its normalizer as it was taught, for every carrier that has such rows."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from events.carriers import CARRIERS
from events.code_tables import NoTableRow, TableRow, patch_of, row_of, shipped_meaning
from events.event import Raw
from events.parsing.meanings import Meaning
from events.vocabulary import Kind, Reason, Status

ROOT = Path(__file__).parents[2]
LOST = Meaning(Kind.SCAN, Status.LOST)
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
def test_what_is_exported_is_read_as_it_was_taught(raw: Raw, tmp_path: Path) -> None:
    rows = {
        carrier_id: row
        for carrier_id in CARRIERS
        if isinstance(row := row_of(carrier_id, raw, None), TableRow)
    }
    assert rows
    shutil.copytree(
        ROOT / "events", tmp_path / "events", ignore=shutil.ignore_patterns("__pycache__")
    )
    patch = patch_of(dict.fromkeys(rows.values(), LOST))
    assert [
        line for line in patch.splitlines() if line.startswith("-") and not line.startswith("---")
    ] == [], "other rows stay as they are"
    applied = subprocess.run(
        ["git", "apply", "-"],
        cwd=tmp_path,
        input=patch,
        text=True,
        capture_output=True,
        check=False,
    )
    assert applied.returncode == 0, applied.stderr
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
    assert wrong == [], (
        "an exported row of these is not read as taught: say in events/code_tables.py how their tables spell a code"
    )


def test_every_row_of_every_table_that_a_code_names_is_found_and_says_what_is_read() -> None:
    found = 0
    for carrier_id, carrier in CARRIERS.items():
        for code in ("DL", "OD", "DELIVERED", "delivered", "1", "01", "OK"):
            row = row_of(carrier_id, Raw(code=code), None)
            if isinstance(row, TableRow) and (said := shipped_meaning(row)) is not None:
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
        assert isinstance(row, TableRow)
        assert row.key == key
    assert row_of("usps", Raw(code="Handed to the robot"), None) == TableRow(
        "usps_codes.csv", ("", "handed to the robot")
    )


@pytest.mark.parametrize(
    ("carrier_id", "raw", "text", "why"),
    [
        ("canonical", Raw(code="X"), None, "no table"),
        ("dhl_unified", Raw(code="X"), None, "column that events do not hold"),
        ("ups", Raw(type="X", code="9Z"), "Some text", "no column for: text"),
        ("royalmail", Raw(type="X", code="9Z"), None, "no column for: type"),
        ("dhl_parcel_de", Raw(code="ZZ"), None, "asks for the type"),
        ("dcsa", Raw(type="TRANSPORT", code="ZZZZ"), None, "asks for more"),
        ("canadapost", Raw(code="1442"), None, None),
        ("purolator", Raw(code="Other"), None, "distinguishes texts"),
    ],
)
def test_where_no_row_says_the_same_the_reason_is_said(
    carrier_id: str, raw: Raw, text: str | None, why: str | None
) -> None:
    row = row_of(carrier_id, raw, text)
    if why is None:
        assert isinstance(row, TableRow)
    else:
        assert isinstance(row, NoTableRow)
        assert why in row.why


def test_a_row_that_is_there_is_changed_and_one_that_says_the_same_makes_no_patch() -> None:
    row = row_of("royalmail", Raw(code="EVGPD"), None)
    assert isinstance(row, TableRow)
    shipped = shipped_meaning(row)
    assert shipped is not None
    assert patch_of({row: shipped}) == ""
    held = Meaning(Kind.SCAN, Status.EXCEPTION, Reason.HELD)
    assert "-event,EVGPD,,out_for_delivery,\n+event,EVGPD,,exception,held\n" in patch_of(
        {row: held}
    )
    assert "+event,EVGPD,info,,\n" in patch_of({row: Meaning(Kind.INFO)})
