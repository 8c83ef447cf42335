"""Self-contained evidence about a shipment: statements, times, conclusions, notifications, proofs.

`gather` reads it in one snapshot, `bundle` seals it, `check_bundle` verifies it anywhere;
`evidence_report` words it for people, `evidence_forms` and `pdf` print it.
"""

from typing import Final

from statesvc.seams import AddOn, ListedCommand

ADDON: Final = AddOn(
    commands={
        "Evidence": {
            "evidence": ListedCommand(
                "statesvc.addons.evidence.evidence_command",
                "write a self-verifying document about a parcel",
                calls_api=True,
            )
        }
    },
    paths=("/v1/shipments/{carrier_id}/{tracking_number}/evidence",),
    documents="statesvc.addons.evidence.verify_bundle:verify_bundle",
    operations="statesvc.addons.evidence.evidence_operations:OPERATIONS",
    computations={"evidence": "statesvc.addons.evidence.evidence_operations:print_evidence"},
)
