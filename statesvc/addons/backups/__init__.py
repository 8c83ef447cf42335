"""What a restore from the backups of this installation would miss: `statesvc backup check`."""

from typing import Final

from statesvc.seams import AddOn, ListedCommand

ADDON: Final = AddOn(
    commands={
        "Admin": {
            "backup": ListedCommand(
                "statesvc.addons.backups.backup_command", "check what a restore would lack"
            )
        }
    }
)
