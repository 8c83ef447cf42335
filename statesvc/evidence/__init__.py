"""Evidence about one shipment that stands by itself: what was said, when we knew it, what we concluded, what we told, with proofs.

`gather` reads it in one snapshot, `bundle` seals it, `check` verifies it anywhere; `story` tells it, as a `page` or on `paper`.
"""
