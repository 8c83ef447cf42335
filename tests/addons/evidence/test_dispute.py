"""Evidence for a case: what was known on a day, what the merchant states, whether the places agree,
and only then `Shipped`.
"""

import copy
import hashlib
import io
import json
import subprocess
import sys
import zipfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from events.vocabulary import Kind, Status
from statesvc.addons.evidence import verify_evidence
from statesvc.addons.evidence.bundle import sealed
from statesvc.addons.evidence.bundle_entry import BundleEntry
from statesvc.addons.evidence.check_bundle import check
from statesvc.addons.evidence.evidence_forms import html_of, print_form
from statesvc.addons.evidence.evidence_report import report_of
from statesvc.addons.evidence.gather import UnknownShipmentError
from statesvc.addons.evidence.merchant_statement import MerchantStatement, statement_commitment
from statesvc.addons.evidence.verify_bundle import NotEvidenceError, read_evidence
from tests.addons.evidence.test_bundle import (
    NUMBER,
    both,
    bundle_of,
    gathered_of,
    keys_of,
    resealed_by_a_stranger,
)
from tests.world.log_builder import LogBuilder, scan

STATED = {
    "case": "dp_1NsHZ2",
    "reason_code": "13.1",
    "order": {"number": "R-77", "placed_on": "2026-02-27", "amount": "129.90 EUR"},
    "ship_to": {
        "name": "Erika Mustermann",
        "line1": "Evergreen Terrace 742",
        "city": "SPRINGFIELD",
        "region": "IL",
        "country": "us",
    },
    "customer": {"name": "Erika Mustermann", "email": "erika@example.com"},
    "merchant": {"name": "Example Sports Ltd"},
}
STATEMENT = MerchantStatement.model_validate(STATED)


async def delivered(log: LogBuilder) -> None:
    await log.append(
        scan(NUMBER, 1, Status.PICKED_UP), scan(NUMBER, 70, Status.DELIVERED, signed_by="J. Doe")
    )
    await log.seal()


async def test_as_of_a_day_it_has_what_was_sealed_by_then_and_the_head_that_was_signed_then(
    database: Any, event_log: LogBuilder
) -> None:
    clock = database.clock
    await event_log.append(scan(NUMBER, 1, Status.PICKED_UP))
    before = await event_log.seal()
    await clock.advance(3600)
    await event_log.append(scan(NUMBER, 70, Status.DELIVERED, signed_by="J. Doe"))
    await event_log.seal()
    row = await event_log.rows(
        "SELECT created_at FROM statesvc.checkpoint ORDER BY tree_size DESC LIMIT 1"
    )
    ((later,),) = row
    then = later - timedelta(seconds=1800)
    past, now = (
        await bundle_of(event_log, as_of=then),
        await bundle_of(event_log, as_of=later + timedelta(days=1)),
    )
    with pytest.raises(UnknownShipmentError, match=f"by {then.year - 1}"):
        await bundle_of(event_log, as_of=then.replace(year=then.year - 1))
    assert before is not None
    assert (past["shipment"]["status"], now["shipment"]["status"]) == ("picked_up", "delivered")
    assert (past["as_of"]["clamped"], now["as_of"]["clamped"]) == (False, True)
    assert "J. Doe" not in json.dumps(past)
    assert report_of(past).summary.notices[0].startswith("What was known on ")
    for bundle in (past, now):
        assert both(bundle, keys_of(bundle)) == (True, True)
    forged = resealed_by_a_stranger(
        {**past, "as_of": {**now["as_of"], "log_index": past["as_of"]["log_index"]}}, past
    )
    assert both(forged, keys_of(forged)) == (False, False), "the head is not of that size"
    longer = resealed_by_a_stranger({**now, "as_of": past["as_of"]}, now)
    assert both(longer, keys_of(longer)) == (False, False), "an entry was sealed later"


async def test_what_the_merchant_states_is_marked_so_and_bound_to_the_entry_by_its_commitment(
    event_log: LogBuilder,
) -> None:
    await delivered(event_log)
    bundle = (await gathered_of(event_log, statement=STATEMENT)).sealed()
    assert bundle["stated"]["statement"] == {**STATED}
    salted = (
        bytes.fromhex(bundle["stated"]["salt"])
        + json.dumps(STATED, sort_keys=True, separators=(",", ":")).encode()
    )
    assert statement_commitment(bundle["stated"]) == hashlib.sha256(salted).hexdigest()
    html = html_of(report_of(bundle)).decode()
    assert "Stated by the merchant" in html
    assert "Evergreen Terrace 742, SPRINGFIELD IL, US" in html
    assert bundle["place_agreement"] == []
    assert bundle["stripe"] == {
        "customer_name": "Erika Mustermann",
        "customer_email_address": "erika@example.com",
        "customer_purchase_ip": None,
        "product_description": None,
        "shipping_carrier": "UPS",
        "shipping_date": "2026-03-01",
        "shipping_tracking_number": NUMBER,
        "shipping_address": "Evergreen Terrace 742, SPRINGFIELD IL, US",
        "shipping_documentation": "evidence.pdf",
    }
    assert both(bundle, keys_of(bundle)) == (True, True)


async def test_shipped_is_said_only_of_a_pick_up_scan_that_was_not_taken_back(
    event_log: LogBuilder,
) -> None:
    await event_log.append(
        scan(NUMBER, 0, Status.INFO_RECEIVED), scan(NUMBER, 5, Status.IN_TRANSIT)
    )
    await event_log.seal()
    unpicked = await bundle_of(event_log)
    await event_log.append(scan(NUMBER, 3, Status.PICKED_UP, native_id="pick-up"))
    await event_log.seal()
    picked = await bundle_of(event_log)
    await event_log.append(
        scan(NUMBER, 9, None, kind=Kind.CORRECTION, corrects="pick-up", native_id="undo")
    )
    await event_log.seal()
    taken_back = await bundle_of(event_log)
    for bundle, name, shipped in (
        (unpicked, "First scan", None),
        (picked, "Shipped", "2026-03-01"),
        (taken_back, "First scan", None),
    ):
        facts = dict(report_of(bundle).summary.facts)
        assert ({"First scan", "Shipped"} & set(facts), bundle["stripe"]["shipping_date"]) == (
            {name},
            shipped,
        )
    assert "08:05" in dict(report_of(unpicked).summary.facts)["First scan"], (
        "a label is no scan of a parcel"
    )
    assert "taken back later" in [line.note for line in report_of(taken_back).statements]


async def test_the_service_is_what_the_carrier_last_called_it_and_both_verifiers_hold_it_against_the_events(
    event_log: LogBuilder,
) -> None:
    await event_log.append(scan(NUMBER, 0, Status.PICKED_UP))
    await event_log.seal()
    unnamed = await bundle_of(event_log)
    await event_log.append(
        scan(NUMBER, 1, Status.IN_TRANSIT, service="UPS Ground"),
        scan(NUMBER, 2, Status.IN_TRANSIT, service="UPS GROUND"),
    )
    await event_log.seal()
    named = await bundle_of(event_log)
    await event_log.append(scan(NUMBER, 3, Status.DELIVERED, service="UPS Next Day Air"))
    await event_log.seal()
    gathered = await gathered_of(event_log)
    changed = await bundle_of(event_log)
    assert "Service" not in dict(report_of(unnamed).summary.facts)
    assert dict(report_of(named).summary.facts)["Service"] == "UPS GROUND"
    assert (changed["shipment"]["service"], dict(report_of(changed).summary.facts)["Service"]) == (
        "UPS Next Day Air",
        "UPS Next Day Air, as last stated; also stated: UPS GROUND",
    )
    assert "UPS Next Day Air, as last stated" in html_of(report_of(changed)).decode()
    for bundle in (unnamed, named, changed):
        assert both(bundle, keys_of(bundle)) == (True, True)
    (signer,) = gathered.signers
    for service in ("UPS Worldwide Express", None):
        forged = copy.deepcopy(changed)
        forged["shipment"]["service"] = service
        resealed = sealed(forged, [signer], origin=signer.verifier.name)
        assert both(resealed, keys_of(resealed)) == (False, service is None), (
            "the one in one file folds no state"
        )


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"case": "Erika Mustermann"},
        {"case": "erika@example.com"},
        {"case": "7", "reason_code": "x" * 40},
        {"case": "7", "ship_to": {"country": "Germany"}},
        {"case": "7", "order": {"number": "a\nb"}},
        {"case": "7", "order": {"number": "a\u202eb"}},
        {"case": "7", "unknown": 1},
    ],
)
def test_a_statement_that_does_not_fit_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        MerchantStatement.model_validate(wrong)


@pytest.mark.usefixtures("own_processes")
async def test_the_zip_verifies_offline_with_the_verifier_in_it(
    event_log: LogBuilder, tmp_path: Path
) -> None:
    await delivered(event_log)
    gathered = await gathered_of(event_log, statement=STATEMENT)
    content = print_form(gathered, "application/zip").content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = [name for name in archive.namelist() if not name.startswith("proofs/")]
        assert sorted(names) == [
            "README.txt",
            "checkpoint.txt",
            "evidence.json",
            "evidence.pdf",
            "verify_evidence.py",
        ]
        archive.extractall(tmp_path)
    (key,) = json.loads((tmp_path / "evidence.json").read_bytes())["log"]["keys"]
    zipped = tmp_path / "evidence.zip"
    zipped.write_bytes(content)

    def run(*arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-I", "-S", str(tmp_path / "verify_evidence.py"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        return done.returncode, done.stdout + done.stderr

    for evidence in (str(zipped), str(tmp_path)):
        code, said = run(evidence, "--key", key)
        assert (
            code,
            "THIS EVIDENCE HOLDS." in said,
            "evidence.pdf was sealed with it" in said,
        ) == (0, True, True)
    code, said = run(str(tmp_path / "evidence.json"))
    assert (
        code,
        "CONSISTENT WITH ITSELF" in said,
        "evidence.pdf is not here, so it was NOT checked" in said,
    ) == (3, True, True)
    (tmp_path / "evidence.pdf").write_bytes(b"%PDF-1.7 another")
    code, said = run(str(tmp_path), "--key", key)
    assert (code, "evidence.pdf is not the one that was sealed" in said) == (1, True)
    assert run(str(tmp_path / "missing"), "--key", key)[0] == 2
    other = "".join(reversed(key))
    assert run(str(zipped), "--key", other) == (
        2,
        (
            "--key is no public key of a log: it looks like NAME+HASH+KEY, or is a file of such"
            " lines.\n"
        ),
    )
    # the PDF in place of the zip: it has names in it, which no error may print
    (tmp_path / "evidence.pdf").write_bytes(b"%PDF-1.7 \xff MUSTER")
    code, said = run(str(tmp_path / "evidence.pdf"), "--key", key)
    assert (code, "MUSTER" in said, "is not evidence of the format" in said) == (2, False, True)
    middle = len(content) // 2
    zipped.write_bytes(content[:middle] + bytes(200) + content[middle + 200 :])
    code, said = run(str(zipped), "--key", key)
    assert (code, "is a zip that is damaged" in said) == (2, True)
    with pytest.raises(NotEvidenceError, match="damaged"):
        read_evidence(zipped.read_bytes())


@pytest.mark.usefixtures("own_processes")
def test_evidence_of_an_earlier_release_still_holds(tmp_path: Path) -> None:
    file = Path(__file__).parent / "bundles" / "666f2f9b.zip"
    evidence = read_evidence(file.read_bytes())
    bundle = json.loads(evidence.document)
    assert check(evidence.document, keys_of(bundle), files=evidence.files) == []
    assert (
        check(
            evidence.document, keys_of(bundle), files={**evidence.files, "evidence.pdf": b"another"}
        )
        != []
    )
    assert report_of(bundle).title == "Proof of delivery"
    with zipfile.ZipFile(file) as archive:
        archive.extractall(tmp_path)
    for verifier in (tmp_path / "verify_evidence.py", Path(verify_evidence.__file__)):
        command = [
            sys.executable,
            "-I",
            "-S",
            str(verifier),
            str(file),
            "--key",
            str(keys_of(bundle)[0]),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, "THIS EVIDENCE HOLDS." in done.stdout) == (0, True), (
            done.stdout + done.stderr
        )


def test_the_verifier_needs_nothing_but_python() -> None:
    source = Path(verify_evidence.__file__).read_text("utf-8")
    compile(source, "verify_evidence.py", "exec")
    imported = {
        line.split()[1].split(".")[0]
        for line in source.splitlines()
        if line.startswith(("import ", "from "))
    }
    assert imported <= {*sys.stdlib_module_names, "__future__"}


def test_its_ed25519_is_that_of_rfc_8032() -> None:
    key = bytes.fromhex("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025")
    signature = bytes.fromhex(
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f76098"
        "4dc6594a7c15e9716ed28dc027beceea1ec40a"
    )
    assert verify_evidence.is_signed(key, signature, bytes.fromhex("af82"))
    assert not verify_evidence.is_signed(key, signature, b"other")
    for place in (0, 31, 32, 63):
        changed = bytearray(signature)
        changed[place] ^= 1
        assert not verify_evidence.is_signed(key, bytes(changed), bytes.fromhex("af82"))
    higher = signature[:32] + (
        int.from_bytes(signature[32:], "little") + verify_evidence.ORDER
    ).to_bytes(32, "little")
    assert not verify_evidence.is_signed(key, higher, bytes.fromhex("af82")), (
        "a signature has one form"
    )


async def test_a_statement_that_is_changed_after_the_seal_shows(event_log: LogBuilder) -> None:
    await delivered(event_log)
    bundle = (await gathered_of(event_log, statement=STATEMENT)).sealed({"evidence.pdf": b"x"})
    for change in (
        ("stated", "statement", "case"),
        ("stripe", "shipping_address"),
        ("documents", "evidence.pdf"),
    ):
        forged = copy.deepcopy(bundle)
        holder = forged
        for step in change[:-1]:
            holder = holder[step]
        holder[change[-1]] = "another"
        assert both(forged, keys_of(forged)) == (False, False)


def test_the_place_of_a_delivery_is_taken_as_exact_as_the_reader_may_see_it() -> None:
    shown = BundleEntry(
        1, "event", {"location": {"postal_code": "627"}}, {"postal_code": "62701"}, "opened"
    )
    assert shown.location == {"postal_code": "62701"}
