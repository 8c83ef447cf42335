"""Verification of the whole log: entries, batches, the tree, signed heads and a stored head.

It trusts only what a signature covers, and names each wrong place.
"""

from typing import Final

from statesvc.seams import AddOn, ListedCommand

ADDON: Final = AddOn(
    commands={
        "Evidence": {
            "verify": ListedCommand(
                "statesvc.addons.verify.verify_command",
                "check the whole log against its signed heads, or a document",
            )
        }
    },
)
