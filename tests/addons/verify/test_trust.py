"""Trust of a verdict: never in the database which is verified."""

from events.merkle.checkpoint import NoteSigner, read_checkpoint
from statesvc.log.signing_keys import read_keys
from tests.world.attack import attack, sealed_story, verify
from tests.world.database import Database


async def test_a_log_signed_again_by_a_forged_key_is_never_sound(database: Database) -> None:
    # a superuser puts a key of theirs into the table and signs every head with it, whatever
    # the entries say by then
    async with sealed_story(database) as log:
        (genuine,) = [key.verifier for key in await read_keys(log.connection)]
        heads = await log.rows(
            "SELECT tree_size, note, created_at FROM statesvc.checkpoint ORDER BY tree_size"
        )
        forger = NoteSigner.fresh(log.origin)
        key = forger.verifier
        await attack(
            database,
            f"UPDATE statesvc.signing_key SET key_id = '\\x{key.key_id.hex()}', public_key ="
            f" '\\x{key.public_key.hex()}'",
            *(
                "UPDATE statesvc.checkpoint SET note ="
                f" '{read_checkpoint(note).signed([forger], at=created_at)}' WHERE tree_size ="
                f" {size}"
                for size, note, created_at in heads
            ),
        )
        own = verify(database)
        assert (own.faults, own.consistent, own.sound, own.trusted_by) == ([], True, False, None)
        by_key = verify(database, keys=[genuine])
        assert {fault.table for fault in by_key.faults} == {"checkpoint"}
        by_head = verify(database, note=heads[-1][1])
        assert not by_head.consistent


async def test_a_head_that_was_kept_vouches_for_what_it_covers_and_its_signer_for_the_rest(
    database: Database,
) -> None:
    async with sealed_story(database) as log:
        (first,) = await log.rows("SELECT note FROM statesvc.checkpoint ORDER BY tree_size LIMIT 1")
        (genuine,) = [key.verifier for key in await read_keys(log.connection)]
        by_head, by_key = (
            verify(database, note=first[0], note_name="head"),
            verify(database, keys=[genuine]),
        )
        assert (by_head.sound, by_head.trusted_by) == (True, "head")
        assert (by_key.sound, by_key.trusted_by) == (True, "--key")
