"""`statesvc log fork --why "..."`: start a new epoch after a restore that lost published entries.

First, erasures and revoked keys that the restore brought back are put into effect again, by their
tombstones outside the database.
"""

import argparse
import asyncio

from statesvc.cli.command_error import CommandError
from statesvc.cli.output import write_json, write_line
from statesvc.cli.session import actor, connect, running_database
from statesvc.cli.tombstone_places import configured_tombstones
from statesvc.database.keyring_store import load_keyring
from statesvc.database.wakeups.wakeup import LOG, notify
from statesvc.files.archive_folder import archive_folder
from statesvc.log.checkpoint_store import checkpoint_store_at
from statesvc.log.tombstones import TombstoneError
from statesvc.privacy.erasure import ReplayedTombstones, ReplayTask, replay_tombstones
from statesvc.roles.master_key import open_master_keys
from statesvc.sealer.fork import Fork, ForkRequest, LostHistory, NoForkError, find_loss, fork
from statesvc.sealer.leadership import Publication
from statesvc.sealer.seal import RefusalError
from statesvc.settings.service_settings import Settings, load_settings


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", required=True)
    forking = commands.add_parser("fork", help="start a new epoch of the log; run docs/restore.md")
    forking.add_argument("--why", required=True, help="recorded in the log: no personal data here")
    forking.add_argument("--dry-run", action="store_true", help="only say what was lost")
    forking.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    if not options.why.strip():
        raise CommandError("--why must say why", exit_code=2)
    try:
        return asyncio.run(_run(options))
    except (NoForkError, RefusalError) as error:
        raise CommandError(str(error)) from error
    except TombstoneError as error:
        raise CommandError(
            "what was erased and revoked since the backup cannot be read, so nothing is forked:"
            f" {error}"
        ) from error


async def _run(options: argparse.Namespace) -> int:
    settings = load_settings()
    publication = _publication(settings)
    async with (
        running_database(settings) as dsns,
        await connect(dsns.owner) as owner,
        await connect(dsns.service, direct=not dsns.is_pooled) as connection,
    ):
        lost = await find_loss(owner, publication)
        if options.dry_run:
            _write_loss(lost, as_json=options.json)
            return 0
        master = await open_master_keys(settings, connection)
        task = ReplayTask(
            tombstones=configured_tombstones(settings),
            keyring=await load_keyring(connection, master),
            folder=archive_folder(settings),
            actor=actor(),
            backup_days=settings.keys.backup_days,
        )
        replayed = await replay_tombstones(connection, task)
        done = await fork(
            owner,
            master,
            publication,
            ForkRequest(actor=actor(), why=options.why, retired=replayed.retired),
        )
        # an erasure that came while the fork waited
        late = await replay_tombstones(connection, task)
        replayed.erased += late.erased
        replayed.revoked += late.revoked
        await notify(connection, LOG)
    _write(done, replayed, as_json=options.json)
    return 0


def _publication(settings: Settings) -> Publication:
    store = (
        None
        if settings.checkpoint.publish is None
        else checkpoint_store_at(settings.checkpoint.publish)
    )
    if store is None and settings.checkpoint_file is None:
        raise CommandError(
            "no place with published heads is configured (STATESVC_SEALER_CHECKPOINT_FILE,"
            " STATESVC_CHECKPOINT_PUBLISH): run this with the sealer's settings, where its"
            " checkpoint file is"
        )
    return Publication(
        file=settings.checkpoint_file,
        keys_file=settings.log_keys_file,
        origin=settings.sealer.origin,
        store=store,
    )


def _write_loss(lost: LostHistory, *, as_json: bool) -> None:
    head = lost.head.checkpoint
    if as_json:
        write_json(
            {
                "epoch": lost.next_epoch,
                "size": lost.size,
                "lost_epoch": head.epoch,
                "lost_size": head.size,
            }
        )
        return
    write_line(_loss(lost))
    write_line(f"A fork would start epoch {lost.next_epoch} at entry {lost.size}.")


def _loss(lost: LostHistory) -> str:
    head = lost.head.checkpoint
    return (
        f"{lost.head.where} has {head.size:,} entries (epoch {head.epoch}); this database has the"
        f" first {lost.size:,} of the log"
    )


def _write(done: Fork, replayed: ReplayedTombstones, *, as_json: bool) -> None:
    if as_json:
        write_json(
            {
                "epoch": done.epoch,
                "size": done.lost.size,
                "lost_epoch": done.lost.head.checkpoint.epoch,
                "lost_size": done.lost.head.checkpoint.size,
                "erased_again": list(map(str, replayed.erased)),
                "revoked_again": replayed.revoked,
                "retired_again": [key.key_id.hex() for key in done.retired_keys],
                "lost_keys": [str(key) for key in done.lost_keys],
                "new_key": None if done.new_key is None else str(done.new_key),
            }
        )
        return
    write_line(f"{_loss(done.lost)}.")
    for shipment_id in replayed.erased:
        write_line(f"erased again: shipment {shipment_id}")
    for key_id in replayed.revoked:
        write_line(f"revoked again: API key {key_id}")
    for key in done.retired_keys:
        write_line(f"retired again: log key {key.key_id.hex()}")
    for key in done.lost_keys:
        write_line(
            f"lost with the secret that the backup lacks: log key {key.key_id.hex()}; it signs no"
            " more"
        )
    if done.new_key is not None:
        write_line(f"a new key of the log, for those who verify it: {done.new_key}")
    write_line(
        f"The log is in epoch {done.epoch}, which begins at entry {done.lost.size:,}. The sealer"
        " goes on within half a minute."
    )
