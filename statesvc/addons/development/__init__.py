"""Tools for those who connect a carrier or a receiver: they need no database.

`normalize` prints the events of a payload, `carriers draft` writes a carrier package from samples,
`listen` forwards a service's changes to a developer's machine.
"""

from typing import Final

from statesvc.seams import AddOn, ListedCommand

ADDON: Final = AddOn(
    commands={
        "Look": {
            "carriers draft": ListedCommand(
                "statesvc.addons.development.carrier_draft",
                "draft a package that reads a carrier's samples",
            ),
            "listen": ListedCommand(
                "statesvc.addons.development.listen_command",
                "forward changes to a receiver on your machine, signed",
                calls_api=True,
            ),
            "normalize": ListedCommand(
                "statesvc.addons.development.normalize",
                "print the events of a payload, without a database",
            ),
        }
    }
)
