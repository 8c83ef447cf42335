"""Codes that operators map, and reading history again: what a carrier's release does not know yet.

Workers read by the rows of this add-on whether it is on or off (`statesvc.reading.code_mapping`).
"""

from typing import Final

from statesvc.seams import AddOn, ListedCommand

_PACKAGE: Final = "statesvc.addons.mappings"
ADDON: Final = AddOn(
    commands={
        "Repair": {
            "renormalize": ListedCommand(
                "statesvc.cli.declared",
                "read history again, append corrections",
                calls_api=True,
            )
        }
    },
    paths=(
        "/v1/unmapped-codes",
        "/v1/unmapped-codes/samples",
        "/v1/code-mappings",
        "/v1/carriers/{carrier_id}/mappings",
        "/v1/carriers/{carrier_id}/mappings/{rest:.*}",
        "/v1/carriers/{carrier_id}/renormalize",
    ),
    operations=f"{_PACKAGE}.renormalize_operations:OPERATIONS",
)
