"""Expectations: checks overdue shipments and records an observation."""

from typing import Final

from statesvc.seams import AddOn, ListedCommand

ADDON: Final = AddOn(
    commands={
        "Repair": {
            "expectations": ListedCommand(
                "statesvc.addons.expectations.expectation_commands",
                "when a parcel counts as stalled or overdue",
                calls_api=True,
            )
        }
    },
    paths=("/v1/expectations", "/v1/expectations/{rest:.*}"),
    catch_up="statesvc.addons.expectations.watcher:catch_up",
    operations="statesvc.addons.expectations.expectation_operations:OPERATIONS",
    jobs={"worker": "statesvc.addons.expectations.watcher:watch_jobs"},
)
