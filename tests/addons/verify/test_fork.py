"""A fork of the log: what a restore lost is given up in an entry, and the log goes on in the next
epoch.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from psycopg import AsyncConnection

from events.merkle.checkpoint import read_checkpoint
from statesvc.addons.verify.verify_log import Verification, VerificationReport, VerificationRequest
from statesvc.addons.verify.worker_pool import LogAccess
from statesvc.log.checkpoint_store import checkpoint_store_at, read_published
from statesvc.log.json_compression import decompress_json
from statesvc.log.signing_keys import read_keys, rotate
from statesvc.log.tree_nodes import tree_root
from statesvc.sealer.fork import Fork, ForkRequest, NoForkError, fork
from statesvc.sealer.leadership import Publication, take_stock
from statesvc.sealer.seal import ForkError
from tests.world.database import Database, without_triggers
from tests.world.log_builder import MASTER, LogBuilder, log_builder

pytestmark = pytest.mark.slow

Restore = Callable[[], Any]
WHY = "the disk died"


@pytest.fixture
def publication(tmp_path: Path) -> Publication:
    return Publication(
        file=tmp_path / "checkpoint",
        keys_file=tmp_path / "checkpoint.keys",
        origin="log.example/tests",
    )


async def back_to(database: Database, size: int, *, published: int | None = None) -> None:
    """Restore a backup that ended with the log's first `size` entries: each is a
    batch of its own here.

    `published`: the entries of its newest head, if it ended before that of the last ones.
    """
    async with without_triggers(database.superuser_dsn) as attacker:
        lost = "(SELECT batch_id FROM statesvc.sealed_batch WHERE first_index >= %s)"
        await attacker.execute(
            f"DELETE FROM statesvc.action WHERE batch_id IN {lost}".encode(), [size]
        )
        await attacker.execute(
            f"DELETE FROM statesvc.batch WHERE batch_id IN {lost}".encode(), [size]
        )
        await attacker.execute("DELETE FROM statesvc.sealed_batch WHERE first_index >= %s", [size])
        await attacker.execute(
            "DELETE FROM statesvc.checkpoint WHERE tree_size > %s", [published or size]
        )


async def acts(log: LogBuilder, *targets: str) -> None:
    for target in targets:
        await log.act(target)
        await log.seal()


async def forked(database: Database, log: LogBuilder, **request: Any) -> Fork:
    async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner:
        return await fork(
            owner, MASTER, log.publication, ForkRequest(actor="cli:ops", why=WHY, **request)
        )


async def verified(database: Database, **request: Any) -> VerificationReport:
    order = VerificationRequest(
        access=LogAccess(dsn=database.superuser_dsn, master_keys=MASTER.keys), **request
    )
    return await asyncio.to_thread(Verification(order, lambda _done, _all: None).run)


@asynccontextmanager
async def restored(database: Database, publication: Publication) -> AsyncIterator[LogBuilder]:
    """Restore a log of three published entries, of which the backup has two; one
    more was written since.
    """
    async with log_builder(database, publication) as log:
        await acts(log, "a", "b", "c")
        await back_to(database, 2, published=1)
        await log.act("since the restore")
        with pytest.raises(ForkError, match=r"has 3 entries, the database 2.*statesvc log fork"):
            await log.seal()
        yield log


async def entries(log: LogBuilder) -> list[tuple[int, dict[str, Any]]]:
    rows = await log.rows(
        "SELECT s.first_index + a.ordinal, a.canonical FROM statesvc.action a JOIN"
        " statesvc.sealed_batch s USING (batch_id) ORDER BY 1"
    )
    return [(index, orjson.loads(canonical)) for index, canonical in rows]


async def test_a_fork_goes_on_from_the_restored_end_and_says_what_was_lost(
    database: Database, publication: Publication
) -> None:
    async with restored(database, publication) as log:
        lost = read_published(publication.file) if publication.file else None
        root = await tree_root(log.connection, 2)
        done = await forked(database, log)
        assert (done.epoch, done.lost.size, done.lost.head.checkpoint.size) == (2, 2, 3)
        head = await log.seal()
        sizes = await log.rows("SELECT tree_size FROM statesvc.checkpoint ORDER BY 1")
        assert (sizes, head.tree_size) == ([(1,), (2,), (3,), (4,)], 4)
        assert head.note.splitlines()[0] == "log.example/tests/epoch-2"
        assert read_published(publication.file or Path()) == head.note
        found = await entries(log)
        assert [(index, document["target"]) for index, document in found] == [
            (0, "a"),
            (1, "b"),
            (2, "log"),
            (3, "since the restore"),
        ]
        entry = found[2][1]
        assert (entry["verb"], entry["epoch"]) == ("log.fork", 2)
        assert entry["details"] == {
            "why": WHY,
            "epoch": 2,
            "size": 2,
            "root": root.hex(),
            "lost_epoch": 1,
            "lost_size": 3,
            "lost_root": read_checkpoint(lost or "").root.hex(),
            "lost_checkpoint": lost,
        }
        # what was recorded before the fork is of the epoch before, wherever it is sealed
        assert "epoch" not in found[3][1]
        await acts(log, "after")
        assert (await entries(log))[-1][1]["epoch"] == 2


async def test_entries_of_all_kinds_are_of_the_new_epoch_and_sound(
    database: Database, publication: Publication
) -> None:
    async with restored(database, publication) as log:
        await log.parcel("1Z0009", steps=2)
        await forked(database, log)
        await log.everything()
        await log.seal()
        keys = [key.verifier for key in await read_keys(log.connection)]
        report = await verified(database, keys=keys)
        assert (report.faults, report.sound) == ([], True)
        events = await log.rows("SELECT canonical FROM statesvc.event")
        assert {orjson.loads(decompress_json(stored)).get("epoch") for (stored,) in events} == {
            2,
            None,
        }


async def test_heads_of_before_the_fork_still_count_and_those_that_were_given_up_are_named(
    database: Database, publication: Publication
) -> None:
    async with log_builder(database, publication) as log:
        await acts(log, "a", "b")
        common = await log.seal()
        await acts(log, "c")
        lost = await log.seal()
        await back_to(database, 2)
        await forked(database, log)
        await acts(log, "after")
        assert (await verified(database, note=common.note)).sound
        (fault,) = (await verified(database, note=lost.note)).faults
        assert (
            "is of epoch 1 and has 3 entries, of which those from 2 on were given up: epoch 2 began"
            in str(fault)
        )


REPLACE = (
    "UPDATE statesvc.action SET canonical ="
    " convert_to(replace(convert_from(canonical, 'UTF8'), '{}', '{}'), 'UTF8')"
)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("DELETE FROM statesvc.log_epoch WHERE epoch = 2", "is not what the forks in the log say"),
        (
            "INSERT INTO statesvc.log_epoch VALUES (3, 3, now())",
            "is not what the forks in the log say",
        ),
        (
            "UPDATE statesvc.log_epoch SET begins = 1 WHERE epoch = 2",
            "is not what the forks in the log say",
        ),
        (REPLACE.format(":2,", ":3,"), "stands at index 2, and says that the log had 3"),
        (REPLACE.format('s":{"epoch":2', 's":{"epoch":3'), "is no fork of a format"),
    ],
)
async def test_a_changed_epoch_is_found(
    database: Database, publication: Publication, change: str, why: str
) -> None:
    async with restored(database, publication) as log:
        await forked(database, log)
        await acts(log, "after")
        async with without_triggers(database.superuser_dsn) as attacker:
            await attacker.execute(
                "ALTER TABLE statesvc.action DROP CONSTRAINT IF EXISTS action_check"
            )
            await attacker.execute(change.encode())
        assert why in str((await verified(database)).faults)


async def test_a_backup_from_before_a_fork_needs_another_epoch(
    database: Database, publication: Publication
) -> None:
    async with restored(database, publication) as log:
        await forked(database, log)
        await acts(log, "x", "y")
        await back_to(database, 1)
        async with without_triggers(database.superuser_dsn) as attacker:
            await attacker.execute("DELETE FROM statesvc.log_epoch WHERE epoch = 2")
        with pytest.raises(ForkError, match="is of epoch 2, the database of epoch 1"):
            await log.seal()
        done = await forked(database, log)
        assert (done.epoch, done.lost.size, done.lost.head.checkpoint.epoch) == (3, 1, 2)
        await acts(log, "z")
        assert (await verified(database)).consistent


async def test_a_log_that_has_all_that_was_published_is_not_forked(
    database: Database, publication: Publication
) -> None:
    async with log_builder(database, publication) as log:
        await acts(log, "a")
        with pytest.raises(NoForkError, match="nothing that was published is missing"):
            await forked(database, log)


async def test_a_log_that_went_on_differently_is_not_forked(
    database: Database, publication: Publication
) -> None:
    async with restored(database, publication) as log:
        # without the published head, as a sealer elsewhere that does not see it
        log.publication = replace(publication, file=None, keys_file=None)
        await acts(log, "x", "y")
        log.publication = publication
        with pytest.raises(NoForkError, match="not the first of this log"):
            await forked(database, log)


async def test_a_fork_waits_for_those_who_write_and_no_old_epoch_follows_it(
    database: Database, publication: Publication
) -> None:
    async with (
        restored(database, publication) as log,
        await AsyncConnection.connect(database.service_dsn) as late,
    ):
        await late.execute("SELECT")
        await LogBuilder(late, log.keyring).act("late")
        forking = asyncio.create_task(forked(database, log))
        await asyncio.sleep(0.3)
        assert not forking.done()
        blocked = asyncio.create_task(log.act("blocked"))
        await asyncio.sleep(0.2)
        assert not blocked.done()
        await late.commit()
        await forking
        await blocked
        await log.seal()
        epochs = {
            document["target"]: document.get("epoch", 1) for _, document in await entries(log)
        }
        assert (epochs["late"], epochs["log"], epochs["blocked"]) == (1, 2, 2)
        assert (await verified(database)).consistent


async def test_a_key_that_was_made_after_the_backup_is_kept_without_its_secret(
    database: Database, publication: Publication
) -> None:
    async with log_builder(database, publication) as log:
        await acts(log, "a", "b")
        async with log.connection.transaction():
            lost = await rotate(log.connection, MASTER, actor="cli:ops", why="a test")
        await log.seal()
        await back_to(database, 2)
        async with await AsyncConnection.connect(
            database.superuser_dsn, autocommit=True
        ) as attacker:
            await attacker.execute(
                "DELETE FROM statesvc.signing_key WHERE key_id = %s", [lost.key_id]
            )
        with pytest.raises(ForkError, match="lacks the log's key"):
            await take_stock(log.connection, MASTER, publication)
        done = await forked(database, log)
        assert list(done.lost_keys) == [lost]
        await acts(log, "after")
        assert [
            key.verifier for key in await read_keys(log.connection) if key.sealed_seed is None
        ] == [lost]


async def test_a_key_that_was_retired_after_the_backup_signs_the_fork_and_no_more(
    database: Database, publication: Publication
) -> None:
    async with log_builder(database, publication) as log:
        await acts(log, "a", "b", "c")
        await back_to(database, 2)
        (old,) = await read_keys(log.connection)
        done = await forked(database, log, retired=[old.verifier.key_id])
        assert done.new_key is not None
        assert list(done.retired_keys) == [old.verifier]
        await acts(log, "after")
        assert {
            key.verifier: key.sealed_seed is None for key in await read_keys(log.connection)
        } == {
            old.verifier: True,
            done.new_key: False,
        }
        # who knows only the old key believes the new one by its announcement, which
        # the fork's head covers
        assert (await verified(database, keys=[old.verifier])).sound


async def test_the_store_keeps_both_histories_and_the_newest_epoch_is_its_latest(
    database: Database, publication: Publication, tmp_path: Path
) -> None:
    store = checkpoint_store_at(str(tmp_path / "store"))
    async with log_builder(database, replace(publication, store=store)) as log:
        await acts(log, "a", "b", "c")
        await store.keep((await log.seal()).note)
        await back_to(database, 2)
        with pytest.raises(ForkError):
            await log.seal()
        await forked(database, log)
        head = await log.seal()
        await store.keep(head.note)
        assert sorted(path.name for path in (tmp_path / "store").iterdir()) == [
            "1.3",
            "2.3",
            "latest",
        ]
        assert await store.latest() == head.note
        await acts(log, "after")
