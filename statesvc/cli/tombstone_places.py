"""Tombstones that commands publish, so that their effects outlive a restore."""

from collections.abc import Sequence

from statesvc.cli.command_error import CommandError
from statesvc.log.checkpoint_store import CheckpointStoreError
from statesvc.log.tombstones import Tombstone, TombstoneError, Tombstones, tombstones_of
from statesvc.settings.service_settings import Settings


def configured_tombstones(settings: Settings) -> Tombstones:
    """Return the places of this installation. Raises CommandError."""
    try:
        return tombstones_of(settings)
    except CheckpointStoreError as error:
        raise CommandError(f"STATESVC_CHECKPOINT_PUBLISH: {error}") from error


async def publish_tombstones(tombstones: Tombstones, published: Sequence[Tombstone]) -> None:
    """Publish the tombstones. Raises CommandError: it is done in the database, and not complete."""
    try:
        await tombstones.publish(published)
    except TombstoneError as error:
        raise CommandError(
            f"done in this database, but a restore would undo it: {error}. Run the command again to"
            " complete it"
        ) from error
