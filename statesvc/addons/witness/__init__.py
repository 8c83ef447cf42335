"""Witnesses (C2SP tlog-witness): others cosign the log's heads."""

from typing import Final

from statesvc.seams import AddOn

ADDON: Final = AddOn(
    findings="statesvc.addons.witness.cosigner:CHECK",
    jobs={"sealer": "statesvc.addons.witness.cosigner:witness_jobs"},
)
