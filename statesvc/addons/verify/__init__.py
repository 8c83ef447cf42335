"""Verifying the whole log: entries against batches, batches against the tree, the tree against its signed heads and one stored elsewhere.

Believes nothing in the database but what a signature vouches for, and names the places that are wrong.
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
