"""Proofs in standard forms, read by programs that are not ours: what they hold, and what they refuse."""

import base64
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from proofbundle.checkpoint import verify_cosignature
from proofbundle.tlogproof import verify_tlog_proof
from scitt_cose.receipt import verify_receipt  # type: ignore[import-untyped]

from events.merkle.checkpoint import NoteSigner, VerifierKey, read_checkpoint
from events.vocabulary import Status
from statesvc.addons.evidence import verify_evidence
from statesvc.addons.evidence.bundle import proof_files
from statesvc.addons.evidence.check_bundle import check
from statesvc.addons.evidence.gather import GatheredEvidence
from tests.addons.evidence.test_bundle import gathered_of
from tests.migrations.kept_release import KeptRelease, kept_releases
from tests.world.log_builder import LogBuilder, log_builder, scan

NUMBERS = [f"1ZPROOF{number:03}" for number in range(10)]


def pem_of(key: VerifierKey) -> bytes:
    public = Ed25519PublicKey.from_public_bytes(key.public_key)
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def tlog_proof_holds(text: str, entry: bytes, key: VerifierKey) -> bool:
    return bool(verify_tlog_proof(text, entry, str(key))["ok"])


def receipt_holds(receipt: bytes, entry: bytes, key: VerifierKey) -> bool:
    result = verify_receipt(receipt, leaf_entry_hex=entry.hex(), log_public_key_pem=pem_of(key))
    return bool(result.ok)


async def evidence_of_scans(database: Any) -> GatheredEvidence:
    async with log_builder(database) as log:
        for minute in range(5):
            await log.append(scan(NUMBERS[0], minute, Status.IN_TRANSIT))
        await log.seal()
        return await gathered_of(log, NUMBERS[0])


async def test_other_programs_hold_each_proof_of_ten_parcels(event_log: LogBuilder) -> None:
    for minute, number in enumerate(NUMBERS * 3):
        await event_log.append(scan(number, minute, Status.IN_TRANSIT))
    await event_log.seal()
    all_evidence = [await gathered_of(event_log, number) for number in NUMBERS]
    for evidence in all_evidence:
        files = evidence.standard_proofs()
        key = evidence.signers[-1].verifier
        assert len(files) == 2 * len(evidence.bundle["entries"])
        for entry in evidence.bundle["entries"]:
            canonical = entry["canonical"].encode()
            tlog_file, cose_file = proof_files(entry)
            assert tlog_proof_holds(files[tlog_file].decode(), canonical, key)
            assert receipt_holds(files[cose_file], canonical, key)


def exit_code_of(verifier: str, file: Path, key: VerifierKey) -> int:
    command = (sys.executable, "-I", verifier, file, "--key", str(key))
    return subprocess.run(command, capture_output=True, check=False).returncode


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize("kept", kept_releases(), ids=lambda kept: kept.folder.name)
async def test_the_verifier_of_each_release_holds_the_evidence_of_today(
    event_log: LogBuilder, kept: KeptRelease, tmp_path: Path
) -> None:
    for number in NUMBERS:
        await event_log.parcel(number)
    await event_log.seal()
    all_evidence = [await gathered_of(event_log, number) for number in NUMBERS]
    with zipfile.ZipFile(kept.evidence) as released:
        verifier = released.extract("verify_evidence.py", tmp_path)
    file = tmp_path / "evidence.json"
    for number, evidence in zip(NUMBERS, all_evidence, strict=True):
        document = orjson.dumps(evidence.sealed())
        for content, wanted in ((document, 0), (document.replace(number.encode(), b"1Z"), 1)):
            file.write_bytes(content)
            assert exit_code_of(verifier, file, evidence.signers[-1].verifier) == wanted


Change = Callable[[bytes], bytes]


def _next_index(text: bytes) -> bytes:
    lines = text.split(b"\n")
    lines[1] = b"index %d" % (int(lines[1].split()[1]) ^ 1)
    return b"\n".join(lines)


def _another_signature(text: bytes) -> bytes:
    """Change the first line that signs: later ones are by keys that a reader may not know."""
    at = text.index("— ".encode()) + 60
    return text[:at] + (b"B" if text[at : at + 1] == b"A" else b"A") + text[at + 1 :]


def _another_hash(text: bytes) -> bytes:
    lines = text.split(b"\n")
    lines[2] = base64.b64encode(bytes(32))
    return b"\n".join(lines)


def _flipped(place: int) -> Change:
    def change(data: bytes) -> bytes:
        changed = bytearray(data)
        changed[place] ^= 1
        return bytes(changed)

    return change


TLOG_FAULTS: Mapping[str, Change] = {
    "index of the proof": _next_index,
    "hash of the proof": _another_hash,
    "header": lambda text: text.replace(b"@v1", b"@v2", 1),
    "signature of the head": _another_signature,
    "root of the head": lambda text: text.replace(
        text.split(b"\n\n")[1].split(b"\n")[2], b"A" * 44
    ),
}
COSE_FAULTS: Mapping[str, Change] = {
    "tag": _flipped(0),
    "protected header": _flipped(8),
    "hash of the receipt": _flipped(-80),
    "payload": lambda data: data.replace(b"\xf6\x58\x40", b"\x41\x00\x58\x40", 1),
    "signature of the receipt": _flipped(-1),
}


@pytest.mark.parametrize("fault", ["", *TLOG_FAULTS, *COSE_FAULTS])
async def test_each_fault_is_refused_by_the_others_and_by_ours(database: Any, fault: str) -> None:
    evidence = await evidence_of_scans(database)
    key, entry = evidence.signers[-1].verifier, evidence.bundle["entries"][2]
    files, names = evidence.standard_proofs(), proof_files(entry)
    for name, faults in zip(names, (TLOG_FAULTS, COSE_FAULTS), strict=True):
        files[name] = faults.get(fault, bytes)(files[name])
    tlog_file, cose_file = names
    canonical = entry["canonical"].encode()
    held = (
        tlog_proof_holds(files[tlog_file].decode(), canonical, key),
        receipt_holds(files[cose_file], canonical, key),
    )
    assert held == (fault not in TLOG_FAULTS, fault not in COSE_FAULTS)
    flaws = check(orjson.dumps(evidence.sealed()), [key], files=files)
    assert {flaw.pointer for flaw in flaws} == {
        f"/{name}" for name, holds in zip(names, held, strict=True) if not holds
    }


async def test_a_proof_of_another_entry_is_refused(database: Any) -> None:
    evidence = await evidence_of_scans(database)
    key, entries = evidence.signers[-1].verifier, evidence.bundle["entries"]
    files = evidence.standard_proofs()
    for name, other in zip(proof_files(entries[1]), proof_files(entries[2]), strict=True):
        files[name] = files[other]
    tlog_file, cose_file = proof_files(entries[1])
    canonical = entries[1]["canonical"].encode()
    assert not tlog_proof_holds(files[tlog_file].decode(), canonical, key)
    assert not receipt_holds(files[cose_file], canonical, key)
    assert len(check(orjson.dumps(evidence.sealed()), [key], files=files)) == 2


async def test_the_second_signature_of_the_head_is_held_where_it_is_or_must_be(
    event_log: LogBuilder,
) -> None:
    for _ in range(2):
        await event_log.append(scan(NUMBERS[0], 1, Status.IN_TRANSIT))
        await event_log.seal()
    evidence = await gathered_of(event_log, NUMBERS[0])
    assert len(await event_log.rows("SELECT FROM statesvc.second_signature")) == 1
    ed25519, ml_dsa = evidence.signers[-1].verifier, evidence.signers[-1].cosigner
    assert ml_dsa is not None
    log_part = evidence.bundle["log"]
    note = log_part["checkpoint"] + log_part["second_signature"]
    assert verify_cosignature(note, str(ml_dsa))["ok"]
    assert log_part["cosigners"] == [str(ml_dsa)]

    def pointers(key: VerifierKey, **changed: Any) -> list[str]:
        bundle = GatheredEvidence(
            {**evidence.bundle, "log": {**log_part, **changed}}, evidence.signers
        )
        return [flaw.pointer for flaw in check(orjson.dumps(bundle.sealed()), [ed25519, key])]

    assert pointers(ed25519) == pointers(ml_dsa) == []
    assert pointers(ed25519, second_signature=None, cosigners=[]) == []
    assert pointers(ml_dsa, second_signature=None) == ["/log/second_signature"]
    another = NoteSigner.fresh(ed25519.name)
    by_another = another.second_signature(read_checkpoint(note), at=None)
    stated = {"second_signature": by_another, "cosigners": [str(another.cosigner)]}
    assert pointers(ml_dsa, **stated) == ["/log/second_signature"]


async def test_the_verifier_in_the_zip_says_that_it_leaves_the_second_key_out(
    database: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence = await evidence_of_scans(database)
    keys = evidence.signers[-1]
    file = tmp_path / "evidence.json"
    file.write_bytes(orjson.dumps(evidence.sealed()))
    both = [str(file), "--key", str(keys.verifier), "--key", str(keys.cosigner)]
    assert verify_evidence.main(both) == 0
    assert "Not checked here: the ML-DSA-44 key." in capsys.readouterr().out
    assert verify_evidence.main([str(file), "--key", str(keys.cosigner)]) == 2
    assert "give that --key, too" in capsys.readouterr().out
