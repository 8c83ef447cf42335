"""Limits of a call."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """Bounds of the work of a call: the next page, or the next call, goes on where it ended."""

    audited_events: int = 1_000
    listed_shipments: int = 20_000
    """Shipments that a page of a filtered list looks at."""
    reread_messages: int = 2_000
    searched_events: int = 20_000
    """Entries in which a call looks for the events of a code at once."""
    feed_entries: int = 2_000
    """Entries that a page of transitions reads at once."""
    feed_reads: int = 20
    """How often it does so: a selection that few transitions fit costs a call no more."""
    counted: int = 100_000
    """Counting stops there: it means at least as many."""
