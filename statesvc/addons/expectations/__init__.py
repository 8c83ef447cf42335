"""Expectations: overdue shipments, awaited numbers, and the carriers' promises."""

from typing import Final

from statesvc.seams import AddOn, ListedCommand

ADDON: Final = AddOn(
    commands={
        "Repair": {
            "expectations": ListedCommand(
                "statesvc.addons.expectations.expectation_commands",
                "show and set when a parcel counts as stalled or overdue",
                calls_api=True,
            )
        }
    },
    paths=(
        "/v1/expectations",
        "/v1/expectations/{rest:.*}",
        "/v1/awaited-numbers",
        "/v1/shipments/{carrier_id}/{tracking_number}/awaited",
        "/v1/reports/promises",
        "/v1/reports/promises/{rest:.*}",
    ),
    findings="statesvc.addons.expectations.awaited_numbers:CHECK",
    catch_up="statesvc.addons.expectations.watcher:catch_up",
    operations="statesvc.addons.expectations.expectation_operations:OPERATIONS",
    jobs={"worker": "statesvc.addons.expectations.watcher:watch_jobs"},
)
