"""Tools for those who connect a carrier: they need no database.

`normalize` prints the events of a payload, `carriers draft` writes a carrier package from samples.
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
            "normalize": ListedCommand(
                "statesvc.addons.development.normalize",
                "print the events of a payload, without a database",
            ),
        }
    }
)
