"""Refusals of the sealer to sign, for a contradiction or a wrong clock."""

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PrivateKey, MLDSA44PublicKey
from psycopg import AsyncConnection

from events.crypto.sealing import MasterKeys
from events.merkle import checkpoint
from events.merkle.checkpoint import NoteSigner, open_checkpoint, second_signature_fault
from statesvc.log.checkpoint_store import read_published, write_published
from statesvc.log.signing_keys import (
    SigningKeyError,
    read_keys,
    read_pinned_keys,
    retire,
    rewrap_seeds,
    rotate,
)
from statesvc.sealer import sealer_loop as loop
from statesvc.sealer.clock_check import ClockCheck, ClockError
from statesvc.sealer.leadership import Publication, signers_of, take_stock
from statesvc.sealer.seal import RefusalError, seal
from tests.statesvc.sealer.test_sealer_loop import is_sealed, running
from tests.world.database import Database, without_triggers
from tests.world.log_builder import MASTER, LogBuilder, log_builder
from tests.world.waiting import until


async def as_attacker(database: Any, *statements: str) -> None:
    async with without_triggers(database.superuser_dsn) as attacker:
        for statement in statements:
            await attacker.execute(statement.encode())


async def two_passes(log: LogBuilder) -> None:
    for _ in range(2):
        await log.act()
        await log.seal()


RESTORE = (
    (
        "INSERT INTO statesvc.unsealed SELECT batch_id, recorded_from FROM statesvc.sealed_batch"
        " WHERE first_index = 1"
    ),
    "DELETE FROM statesvc.sealed_batch WHERE first_index = 1",
    "DELETE FROM statesvc.checkpoint WHERE tree_size = 2",
)
"""Back to where the log was after its first round."""


async def test_the_published_file_holds_the_newest_head(database: Any, tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    async with log_builder(database, Publication(file=file, origin="log.example/tests")) as log:
        await two_passes(log)
        assert read_published(file) == (await log.seal()).note
        # a test waits for nothing else
        assert sorted(os.listdir(tmp_path)) == ["checkpoint"]  # noqa: PTH208


async def test_a_restored_backup_that_went_on_differently_is_not_signed_over(
    database: Any, tmp_path: Path
) -> None:
    file = tmp_path / "checkpoint"
    async with log_builder(database, Publication(file=file, origin="log.example/tests")) as log:
        await two_passes(log)
        await as_attacker(database, *RESTORE, "DELETE FROM statesvc.unsealed")
        for _ in range(2):
            await log.act("another history")
        sealed, _ = await take_stock(log.connection, MASTER, replace(log.publication, file=None))
        await seal(log.connection, sealed, from_id=0)
        with pytest.raises(RefusalError, match="not those of the published checkpoint"):
            await log.seal()


async def test_a_head_is_written_outside_before_anybody_can_read_it(
    database: Any, tmp_path: Path
) -> None:
    async with log_builder(
        database, Publication(file=tmp_path / "missing folder" / "checkpoint", origin=None)
    ) as log:
        await log.act()
        with pytest.raises(RefusalError, match="cannot be written"):
            await log.seal()
        assert await log.rows("SELECT FROM statesvc.checkpoint") == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            "UPDATE statesvc.checkpoint SET root = sha256('x') WHERE tree_size = 2",
            "says something else than its note",
        ),
        (
            (
                "UPDATE statesvc.checkpoint SET note = replace(note, '\n2\n', '\n3\n') WHERE"
                " tree_size = 2"
            ),
            "does not fit",
        ),
        (
            "DELETE FROM statesvc.sealed_batch WHERE first_index = 1",
            "has 2 entries, the database 1",
        ),
        (
            "UPDATE statesvc.batch SET leaf_hashes = sha256('x')",
            "are not those of the newest checkpoint",
        ),
        ("DELETE FROM statesvc.batch", "incomplete"),
    ],
)
async def test_a_changed_log_is_not_signed_over(
    database: Any, change: str, why: str, event_log: LogBuilder
) -> None:
    await two_passes(event_log)
    await as_attacker(database, change)
    with pytest.raises(RefusalError, match=why):
        await event_log.seal()


async def test_a_stranger_s_head_is_not_taken_for_ours(database: Any, tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    async with log_builder(database, Publication(file=file, origin="log.example/tests")) as log:
        await two_passes(log)
        stranger = NoteSigner.fresh("log.example/tests")
        write_published(file, (await log.opened()).signed([stranger]))
        with pytest.raises(RefusalError, match="no known key"):
            await log.seal()


def pinned(folder: Path) -> Publication:
    return Publication(
        file=folder / "checkpoint", keys_file=folder / "checkpoint.keys", origin="log.example/tests"
    )


async def test_the_log_s_keys_are_pinned_outside_the_database(
    database: Database, tmp_path: Path
) -> None:
    async with log_builder(database, pinned(tmp_path)) as log:
        await two_passes(log)
        (first,) = await read_keys(log.connection)
        assert read_pinned_keys(tmp_path / "checkpoint.keys") == [first.verifier]
        async with log.connection.transaction():
            second = await rotate(log.connection, MASTER, actor="ops", why="a year has passed")
        await log.seal()
        assert read_pinned_keys(tmp_path / "checkpoint.keys") == [first.verifier, second]


async def test_another_key_in_the_database_than_was_pinned_is_refused(
    database: Database, tmp_path: Path
) -> None:
    async with log_builder(database, pinned(tmp_path)) as log:
        await two_passes(log)
        stranger = NoteSigner.fresh("log.example/tests").verifier
        insert = (
            "INSERT INTO statesvc.signing_key (key_id, origin, public_key, sealed_seed,"
            f" created_at, retired_at) VALUES ('\\x{stranger.key_id.hex()}', '{stranger.name}',"
            f" '\\x{stranger.public_key.hex()}', NULL, now(), now())"
        )
        await as_attacker(database, insert)
        with pytest.raises(RefusalError, match="was never pinned"):
            await log.seal()
        await as_attacker(database, "DELETE FROM statesvc.signing_key WHERE retired_at IS NULL")
        with pytest.raises(RefusalError, match="lacks the log's key"):
            await log.seal()


async def test_the_first_key_is_made_once_and_sealed(event_log: LogBuilder) -> None:
    await event_log.act()
    await event_log.seal()
    (key,) = await read_keys(event_log.connection)
    await event_log.seal()
    assert await read_keys(event_log.connection) == [key]
    (signer,) = await signers_of(event_log.connection, MASTER)
    assert signer.verifier == key.verifier
    assert key.sealed_seed is not None
    assert signer.seed not in key.sealed_seed
    with pytest.raises(RefusalError, match="cannot be used"):
        await signers_of(event_log.connection, MasterKeys([bytes(32)]))


async def test_a_new_key_signs_beside_the_old_one_until_that_is_retired(
    event_log: LogBuilder,
) -> None:
    await two_passes(event_log)
    (old,) = [key.verifier for key in await read_keys(event_log.connection)]
    async with event_log.connection.transaction():
        new = await rotate(event_log.connection, MASTER, actor="cli:ops", why="a year has passed")
    async with event_log.connection.transaction():
        with pytest.raises(SigningKeyError, match="no checkpoint covers"):
            await retire(event_log.connection, old.key_id, actor="cli:ops", why="as above")
    head = await event_log.seal()
    assert open_checkpoint(head.note, [old, new]).signed_by == {old, new}
    halves = {key.cosigner for key in await read_keys(event_log.connection)} - {None}
    assert len(halves) == 2
    (line,) = (await event_log.rows("SELECT line FROM statesvc.second_signature"))[0]
    assert open_checkpoint(head.note + line, filter(None, halves)).signed_by == halves
    async with event_log.connection.transaction():
        await retire(event_log.connection, old.key_id, actor="cli:ops", why="as above")
    head = await event_log.seal()
    assert open_checkpoint(head.note, [old, new]).signed_by == {new}
    assert [key.sealed_seed is None for key in await read_keys(event_log.connection)] == [
        True,
        False,
    ]
    with pytest.raises(SigningKeyError, match="newest key"):
        await retire(event_log.connection, new.key_id, actor="cli:ops", why="too many")
    verbs = await event_log.rows(
        "SELECT verb FROM statesvc.action WHERE verb LIKE 'log_key%' ORDER BY batch_id"
    )
    assert verbs == [("log_key.rotate",), ("log_key.retire",)]


async def test_the_signing_key_moves_to_a_new_master_key(
    event_log: LogBuilder, owner: AsyncConnection[Any]
) -> None:
    new = MasterKeys([bytes(32), bytes(range(32))])
    await two_passes(event_log)
    (before,) = await signers_of(event_log.connection, MASTER)
    assert await rewrap_seeds(owner, new) == 1
    assert await rewrap_seeds(owner, new) == 0
    (after,) = await signers_of(event_log.connection, MasterKeys([bytes(32)]))
    assert after.seed == before.seed


async def test_a_public_key_put_in_place_of_ours_is_noticed(
    database: Any, event_log: LogBuilder
) -> None:
    await two_passes(event_log)
    await as_attacker(database, "UPDATE statesvc.signing_key SET public_key = sha256('x')")
    with pytest.raises(RefusalError):
        await signers_of(event_log.connection, MASTER)


async def test_a_key_of_an_older_release_gets_its_second_half_and_keeps_it(
    database: Any, event_log: LogBuilder
) -> None:
    await two_passes(event_log)
    (made,) = await read_keys(event_log.connection)
    assert made.cosigner is not None
    await as_attacker(database, "UPDATE statesvc.signing_key SET cosigner = NULL")
    await two_passes(event_log)
    assert await read_keys(event_log.connection) == [made]
    stranger = NoteSigner.fresh(event_log.origin).cosigner
    assert stranger is not None
    key = stranger.public_key.hex()
    await as_attacker(database, f"UPDATE statesvc.signing_key SET cosigner = '\\x{key}'")
    await event_log.act()
    with pytest.raises(RefusalError, match="was changed in the database"):
        await event_log.seal()


async def test_without_ml_dsa_in_openssl_a_log_that_has_it_goes_on_by_ed25519(
    monkeypatch: pytest.MonkeyPatch, event_log: LogBuilder
) -> None:
    await two_passes(event_log)
    (key,) = await read_keys(event_log.connection)
    assert key.cosigner is not None
    for algorithm in (MLDSA44PrivateKey, MLDSA44PublicKey):
        without = type(algorithm.__name__, (), dict.fromkeys(MADE_FROM, unsupported))
        monkeypatch.setattr(checkpoint, algorithm.__name__, without)
    (line,) = (await event_log.rows("SELECT line FROM statesvc.second_signature"))[0]
    note = (await event_log.rows("SELECT note FROM statesvc.checkpoint ORDER BY 1 DESC"))[0][0]
    stated = [key.cosigner]
    assert second_signature_fault(note, line, trusted=[], stated=stated) is None
    why = second_signature_fault(note, line, trusted=stated, stated=[])
    assert why is not None
    assert "takes OpenSSL 3.5" in why
    await event_log.act()
    assert open_checkpoint((await event_log.seal()).note, [key.verifier]).signed_by == {
        key.verifier
    }
    assert await read_keys(event_log.connection) == [key]


MADE_FROM = ("from_seed_bytes", "from_public_bytes")


def unsupported(_material: bytes) -> None:
    raise UnsupportedAlgorithm("ML-DSA-44")


HOUR = 3600.0


async def commit(log: LogBuilder, sealer: Any) -> None:
    """Commit something to seal; the sealer is woken, as by any commit of the service."""
    await log.act()
    sealer._woken.set()  # noqa: SLF001 - without a connection of its own for one notification


@pytest.mark.parametrize(("shift", "side"), [(HOUR, "s ahead of"), (-HOUR, "s behind")])
async def test_a_clock_that_steps_stops_the_sealing_and_is_named_until_it_is_right(
    database: Any, monkeypatch: pytest.MonkeyPatch, shift: float, side: str
) -> None:
    monkeypatch.setattr(loop, "_CLOCK_SECONDS", 0.05)
    async with log_builder(database) as log, running(database) as (sealer, _):
        await commit(log, sealer)
        await until(lambda: is_sealed(log, 1))
        await database.clock.advance(shift)
        sealer._woken.set()  # noqa: SLF001 - as a commit would
        await until(lambda: sealer.refusal is not None)
        assert side in str(sealer.refusal)
        assert abs(sealer.clock.database_ahead_seconds - shift) < 5
        assert not sealer.leads
        await database.clock.advance(-shift)
        await commit(log, sealer)
        await until(lambda: is_sealed(log, 2))
        assert sealer.refusal is None


async def test_a_few_seconds_are_borne(database: Any) -> None:
    await database.clock.advance(3)
    async with log_builder(database) as log, running(database) as (sealer, _):
        await commit(log, sealer)
        await until(lambda: is_sealed(log, 1))
        assert 1 < sealer.clock.database_ahead_seconds < 4


async def test_what_was_sealed_or_recorded_in_the_future_is_not_sealed_upon(
    database: Any, event_log: LogBuilder
) -> None:
    # an answer that took long is no wrong clock
    await ClockCheck(now=iter((time.time() - 8, time.time() + 8)).__next__).check(
        event_log.connection
    )
    await database.clock.advance(HOUR)
    await event_log.act()
    await database.clock.advance(-HOUR)
    with pytest.raises(
        ClockError,
        match=r"waits to be sealed was recorded at .* has not come yet.*CLOCK_SECONDS_MAX",
    ):
        await ClockCheck().check(event_log.connection)
    await ClockCheck(seconds_max=2 * HOUR).check(event_log.connection)
    await database.clock.advance(HOUR)
    await event_log.seal()
    await database.clock.advance(-HOUR)
    with pytest.raises(ClockError, match="the newest sealed entry was sealed"):
        await ClockCheck().check(event_log.connection)
