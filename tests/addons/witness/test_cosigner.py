"""Heads are cosigned by witnesses; whatever those answer, sealing goes on and no line is kept that
does not hold.
"""

import asyncio
import zipfile
from argparse import Namespace
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web
from proofbundle.checkpoint import verify_cosignature
from proofbundle.tlogproof import verify_tlog_proof

from events.merkle.checkpoint import VerifierKey, read_checkpoint
from statesvc.addons.evidence.bundle import proof_files
from statesvc.addons.evidence.check_bundle import check
from statesvc.addons.evidence.verify_bundle import verify_bundle
from statesvc.addons.witness import cosigner
from statesvc.addons.witness.cosigner import ANSWER_BYTES_MAX, CHECK, Cosigner
from statesvc.database.pool import PoolLimits, make_pool
from statesvc.log.checkpoints import SignedHead, cosigned_head
from statesvc.log.signing_keys import read_keys, rotate
from statesvc.settings.witnesses import Witness
from statesvc.telemetry.metrics import Telemetry
from tests.addons.evidence.test_bundle import gathered_of
from tests.addons.evidence.test_standard_proofs import exit_code_of
from tests.migrations.kept_release import kept_releases
from tests.world.attack import attack
from tests.world.log_builder import MASTER, LogBuilder
from tests.world.witness import OtherWitness, RealWitness

LIMITS = PoolLimits(
    connections_max=4,
    acquire_seconds=5,
    statement_seconds=5,
    lock_seconds=5,
    idle_in_transaction_seconds=5,
)
AWAY = Witness(
    VerifierKey.parse(OtherWitness("witness.example/away").key, is_witness=True), "http://[::1]:1"
)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cosigner, "_RETRY_SECONDS_MAX", 0.05)
    monkeypatch.setattr(cosigner, "_ANSWER_SECONDS", 1.0)


@asynccontextmanager
async def cosigning(
    database: Any, witnesses: Sequence[Witness], quorum: int = 1
) -> AsyncIterator[asyncio.Event]:
    pool = make_pool(database.service_dsn, name="cosigner-test", limits=LIMITS)
    await pool.open()
    telemetry, sealed = Telemetry(), asyncio.Event()
    working = Cosigner(
        pool,
        witnesses,
        quorum,
        leads=lambda: True,
        sealed=sealed,
        telemetry=telemetry,
        interval_seconds=0.02,
    )
    task = asyncio.create_task(working.run())
    try:
        yield sealed
    finally:
        working.stop()
        await asyncio.wait_for(task, 10)
        telemetry.close()
        await pool.close()


async def cosigned(log: LogBuilder, size: int) -> SignedHead:
    """Return the head of this size, once it has its cosignatures."""
    async with asyncio.timeout(15):
        # a server and a database decide
        while True:
            head = await cosigned_head(log.connection)
            if head is not None and head.tree_size == size:
                return head
            await asyncio.sleep(0.02)


async def faults(log: LogBuilder, containing: str) -> list[str]:
    """Return the findings, once they contain this text."""
    async with asyncio.timeout(15):
        while True:
            found = [finding.text for finding in await CHECK.find(log.connection)]
            if containing in "; ".join(found):
                return found
            await asyncio.sleep(0.02)


async def key_of(log: LogBuilder) -> VerifierKey:
    return (await read_keys(log.connection))[-1].verifier


@pytest.mark.usefixtures("own_processes")
async def test_a_witness_that_is_not_ours_cosigns_a_log_as_it_grows(
    database: Any, event_log: LogBuilder, tmp_path: Path
) -> None:
    await event_log.parcel("1Z0001")
    head = await event_log.seal()
    real = RealWitness(tmp_path)
    key = await asyncio.to_thread(real.made, await key_of(event_log))
    with real.serving(key) as witness:
        async with cosigning(database, [witness]) as sealed:
            first = await cosigned(event_log, head.tree_size)
            # the key that the witness knows is enough until it is retired
            async with event_log.connection.transaction():
                await rotate(event_log.connection, MASTER, actor="cli:ops", why="a test")
            for number in ("1Z0002", "1Z0003"):
                await event_log.parcel(number)
                head = await event_log.seal()
                sealed.set()
                grown = await cosigned(event_log, head.tree_size)
        # this process and the witness begin anew, the one without the witness's size
    with real.serving(key) as witness:
        await event_log.act()
        head = await event_log.seal()
        async with cosigning(database, [witness]):
            last = await cosigned(event_log, head.tree_size)
        assert await CHECK.find(event_log.connection) == []
    for each in (first, grown, last):
        assert each.cosignatures is not None
        assert each.cosignatures not in each.note
        assert verify_cosignature(each.note + each.cosignatures, key)["ok"]


@pytest.mark.usefixtures("own_processes")
async def test_a_log_that_was_rolled_back_is_refused_and_one_that_is_unknown(
    database: Any, event_log: LogBuilder, tmp_path: Path
) -> None:
    for number in ("1Z0001", "1Z0002"):
        await event_log.parcel(number)
        head = await event_log.seal()
    real = RealWitness(tmp_path)
    other = VerifierKey("log.example", (await key_of(event_log)).public_key)
    key = await asyncio.to_thread(real.made, other)
    with real.serving(key) as witness:
        async with cosigning(database, [witness]):
            await faults(event_log, f"{real.name} answered 404: it does not know this log")
    await asyncio.to_thread(real.trust, await key_of(event_log))
    with real.serving(key) as witness:
        async with cosigning(database, [witness]) as sealed:
            await cosigned(event_log, head.tree_size)
            await attack(
                database, f"DELETE FROM statesvc.checkpoint WHERE tree_size = {head.tree_size}"
            )
            sealed.set()
            await faults(event_log, f"cosigned {head.tree_size:,} entries, and THE LOG HAS")


def stated(status: int, body: str = "", content_type: str = "text/plain") -> web.Response:
    return web.Response(status=status, text=body, headers={"Content-Type": content_type})


SIZE = "text/x.tlog.size"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("slow", "does not answer: TimeoutError"),
        ("another text", "does not fit the checkpoint's text"),
        ("another name", "no known key has signed"),
        ("no time", "a cosignature has a time"),
        ("another note", "three lines and no more"),
        (stated(200), "no known key has signed"),
        (stated(200, "— nothing"), "a note is text, an empty line, and signature lines"),
        (stated(200, "A" * (ANSWER_BYTES_MAX + 1)), "answers more than 16 KiB"),
        (stated(400), "answered 400: see the witness's log"),
        (stated(403), "answered 403: it trusts none of the keys"),
        (stated(404), "answered 404: it does not know this log"),
        (stated(422), "answered 422: THE LOG DOES NOT CONTINUE"),
        (stated(500), "answered 500"),
        (web.Response(status=307, headers={"Location": "/elsewhere"}), "answered 307"),
        (web.Response(body=b"\x1f\x8b", headers={"Content-Encoding": "gzip"}), "witness"),
        (web.Response(body=b"\xff"), "no valid cosignature"),
        (stated(409, "1\n", SIZE), "answered 409: see the witness's log"),
        (stated(409, "1\n"), "409 without a size"),
        (stated(409, "01\n", SIZE), "409 without a size"),
        (stated(409, "-1\n", SIZE), "409 without a size"),
        (stated(409, "99\n", SIZE), "cosigned 99 entries, and THE LOG HAS"),
    ],
    ids=str,
)
async def test_a_wrong_answer_is_not_kept_and_said(
    database: Any, event_log: LogBuilder, answer: web.Response | str, why: str
) -> None:
    other = OtherWitness()
    async with other.serving() as witness:
        await event_log.parcel("1Z0001")
        await event_log.seal()
        other.answer = answer
        async with cosigning(database, [witness]) as sealed:
            found = await faults(event_log, why)
            # sealing does not wait for it
            await event_log.parcel("1Z0002")
            head = await event_log.seal()
            sealed.set()
            assert found[-1].startswith("0 of 1 witnesses cosigned the newest checkpoint")
            assert await cosigned_head(event_log.connection) is None
            other.answer = ""
            assert len((await cosigned(event_log, head.tree_size)).cosignatures or "") < 200
        assert await CHECK.find(event_log.connection) == []


async def test_a_head_without_its_quorum_is_not_shown_as_witnessed(
    database: Any, event_log: LogBuilder
) -> None:
    first, second = OtherWitness("witness.example/1"), OtherWitness("witness.example/2")
    async with (
        first.serving() as one,
        second.serving() as two,
    ):
        await event_log.parcel("1Z0001")
        old = await event_log.seal()
        async with cosigning(database, [one, two, AWAY], quorum=2) as sealed:
            await cosigned(event_log, old.tree_size)
            # one away is said, and is no matter
            assert ["away does not answer" in each for each in await faults(event_log, "away")] == [
                True
            ]
            second.answer = stated(500)
            await event_log.parcel("1Z0002")
            new = await event_log.seal()
            sealed.set()
            await faults(
                event_log, f"1 of 3 witnesses cosigned the newest checkpoint, of {new.tree_size}"
            )
            head = await cosigned_head(event_log.connection)
            assert head is not None
            assert head.tree_size == old.tree_size
            second.answer = ""
            lines = (await cosigned(event_log, new.tree_size)).cosignatures or ""
        assert [line.split()[1] for line in lines.splitlines()] == [first.name, second.name]
        # a setting that went is not said for ever
        await database.clock.advance(3601)
        assert await CHECK.find(event_log.connection) == []


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize("is_ml_dsa", [False, True], ids=["ed25519", "ml-dsa-44"])
async def test_evidence_has_the_cosignatures_of_the_head_that_covers_it(
    database: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    event_log: LogBuilder,
    *,
    is_ml_dsa: bool,
) -> None:
    other, stranger = OtherWitness(is_ml_dsa=is_ml_dsa), OtherWitness(is_ml_dsa=is_ml_dsa)
    async with other.serving() as witness:
        await event_log.parcel("1Z0001")
        head = await event_log.seal()
        async with cosigning(database, [witness]):
            await cosigned(event_log, head.tree_size)
        await event_log.parcel("1Z0002")
        await event_log.seal()
        evidence = await gathered_of(event_log, "1Z0001")
        later = await gathered_of(event_log, "1Z0002")
    cosigner_key = evidence.signers[-1].cosigner
    assert cosigner_key is not None
    keys = [evidence.signers[-1].verifier, cosigner_key]
    assert read_checkpoint(evidence.bundle["log"]["checkpoint"]).size == head.tree_size
    files = evidence.standard_proofs()
    document = orjson.dumps(evidence.sealed())
    assert check(document, keys, files=files, witnesses=[witness.key]) == []
    unknown = VerifierKey.parse(stranger.key, is_witness=True)
    assert [flaw.pointer for flaw in check(document, keys, files=files, witnesses=[unknown])] == [
        "/log/cosignatures"
    ]
    wish: dict[str, Any] = {
        "key": keys,
        "bundle": tmp_path / "evidence.json",
        "tsa_cert": None,
        "json": False,
    }
    wish["bundle"].write_bytes(document)
    for demanded, code, said in (
        (witness.key, 0, f"Its checkpoint was cosigned by {other.name}."),
        (unknown, 1, f"/log/cosignatures: witness {other.name}: no known key has signed"),
    ):
        assert verify_bundle(Namespace(**wish, witness=[demanded])) == code
        assert said in capsys.readouterr().out
    for kept in kept_releases():
        with zipfile.ZipFile(kept.evidence) as released:
            verifier = released.extract("verify_evidence.py", tmp_path)
        assert exit_code_of(verifier, wish["bundle"], keys[0]) == 0
    entry = evidence.bundle["entries"][0]
    proof, canonical = files[proof_files(entry)[0]].decode(), entry["canonical"].encode()
    for key, holds in ((other.key, True), (stranger.key, False)):
        read = verify_tlog_proof(proof, canonical, str(keys[0]), [key], threshold=1)
        assert read["ok"] is holds
    # not yet cosigned, and a demanded witness says so
    assert later.bundle["log"]["cosignatures"] is None
    newest = orjson.dumps(later.sealed())
    assert check(newest, keys) == []
    assert len(check(newest, keys, witnesses=[witness.key])) == 1
