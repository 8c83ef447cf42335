"""Evidence about one shipment that stands by itself: what was said, when we knew it, what we concluded, what we sent, with proofs.

`gather` reads it in one snapshot, `bundle` seals it, `check_bundle` verifies it anywhere; `evidence_report` puts it into words for people,
which `evidence_forms` and `pdf` print.
"""
