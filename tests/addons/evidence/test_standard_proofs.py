"""Proofs in standard forms, read by programs that are not ours: what they hold, and what they refuse."""

import base64
from collections.abc import Callable, Mapping
from typing import Any

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from proofbundle.tlogproof import verify_tlog_proof
from scitt_cose.receipt import verify_receipt  # type: ignore[import-untyped]

from events.merkle.checkpoint import VerifierKey
from events.vocabulary import Status
from statesvc.addons.evidence.bundle import proof_files
from statesvc.addons.evidence.check_bundle import check
from statesvc.addons.evidence.gather import GatheredEvidence, Wanted, gather
from tests.world.story import Story, scan, story

NUMBERS = [f"1ZPROOF{number:03}" for number in range(10)]


async def evidence_of(log: Story, number: str) -> GatheredEvidence:
    wanted = Wanted(
        carrier_id="ups",
        number=number,
        discriminator=None,
        keyring=log.keyring,
        personal=True,
        archive=None,
    )
    return await gather(log.connection, wanted)


def pem_of(key: VerifierKey) -> bytes:
    public = Ed25519PublicKey.from_public_bytes(key.public_key)
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def tlog_proof_holds(text: str, entry: bytes, key: VerifierKey) -> bool:
    return bool(verify_tlog_proof(text, entry, str(key))["ok"])


def receipt_holds(receipt: bytes, entry: bytes, key: VerifierKey) -> bool:
    result = verify_receipt(receipt, leaf_entry_hex=entry.hex(), log_public_key_pem=pem_of(key))
    return bool(result.ok)


async def test_other_programs_hold_each_proof_of_ten_parcels(database: Any) -> None:
    async with story(database) as log:
        for minute, number in enumerate(NUMBERS * 3):
            await log.say(scan(number, minute, Status.IN_TRANSIT))
        await log.seal()
        all_evidence = [await evidence_of(log, number) for number in NUMBERS]
    for evidence in all_evidence:
        files = evidence.standard_proofs()
        key = evidence.signers[-1].verifier
        assert len(files) == 2 * len(evidence.bundle["entries"])
        for entry in evidence.bundle["entries"]:
            canonical = entry["canonical"].encode()
            tlog_file, cose_file = proof_files(entry)
            assert tlog_proof_holds(files[tlog_file].decode(), canonical, key)
            assert receipt_holds(files[cose_file], canonical, key)


Change = Callable[[bytes], bytes]
ANOTHER_ENTRY = b'{"entry":"event"}'


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
    async with story(database) as log:
        for minute in range(5):
            await log.say(scan(NUMBERS[0], minute, Status.IN_TRANSIT))
        await log.seal()
        evidence = await evidence_of(log, NUMBERS[0])
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
    async with story(database) as log:
        for minute in range(5):
            await log.say(scan(NUMBERS[0], minute, Status.IN_TRANSIT))
        await log.seal()
        evidence = await evidence_of(log, NUMBERS[0])
    key, entries = evidence.signers[-1].verifier, evidence.bundle["entries"]
    files = evidence.standard_proofs()
    for name, other in zip(proof_files(entries[1]), proof_files(entries[2]), strict=True):
        files[name] = files[other]
    tlog_file, cose_file = proof_files(entries[1])
    canonical = entries[1]["canonical"].encode()
    assert not tlog_proof_holds(files[tlog_file].decode(), canonical, key)
    assert not receipt_holds(files[cose_file], canonical, key)
    assert len(check(orjson.dumps(evidence.sealed()), [key], files=files)) == 2
