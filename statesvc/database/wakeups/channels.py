"""The channels of wake-ups."""

from typing import Final

INBOX: Final = "statesvc_inbox"
"""Messages may be ready to be claimed by a worker."""
INBOX_NOW: Final = "statesvc_inbox_now"
"""As `INBOX`, for messages that must not wait for a worker's window: released, replayed,
repaired.
"""
OUTBOX: Final = "statesvc_outbox"
"""Notifications may be ready to be claimed by a notifier."""
LOG: Final = "statesvc_log"
"""Entries may have been committed that wait to be sealed."""
SEALED: Final = "statesvc_sealed"
"""A checkpoint was published: the sealed log has grown."""
TRIALS: Final = "statesvc_trial"
"""Trials may be ready to be claimed by a foreign candidate."""
READY_NOW: Final = (INBOX, INBOX_NOW)
"""Sent together: a worker of another release or language listens on the first alone."""
ONE_IS_ENOUGH: Final = frozenset({INBOX, OUTBOX})
"""Channels of which the first of several listeners claims; the others hear of it a little later,
for it may have stopped.
"""
UNHURRIED: Final = frozenset({LOG})
"""Their listeners have a pace of their own, slower than a waker's."""
