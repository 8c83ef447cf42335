"""Reading messages: which normalizer reads which, with what mappings, and what a candidate would read otherwise."""
