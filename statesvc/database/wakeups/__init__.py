"""Wake-ups: hints between processes that a queue has work.

They are sent after commit, coalesced, from a connection of their own: a NOTIFY inside an ingest or
append transaction would make its commit lock across the whole cluster through the fsync. A lost
hint costs latency, never work: the truth is the table.
"""
