"""The dial of a carrier: which code reads its messages, and the kill switch. Read by the claim itself, so a change needs no restart."""
