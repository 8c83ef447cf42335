"""Reading messages: the choice of normalizer, code mappings, and comparison with a candidate."""
