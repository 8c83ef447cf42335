"""The channels of wake-ups."""

from typing import Final

INBOX: Final = "statesvc_inbox"
"""Messages may be ready to be claimed by a worker."""
OUTBOX: Final = "statesvc_outbox"
"""Notifications may be ready to be claimed by a notifier."""
LOG: Final = "statesvc_log"
"""Entries may have been committed that wait to be sealed."""
SEALED: Final = "statesvc_sealed"
"""A checkpoint was published: the sealed log has grown."""
TRIALS: Final = "statesvc_trial"
"""Trials may be ready to be claimed by a foreign candidate."""
ONE_IS_ENOUGH: Final = frozenset({INBOX, OUTBOX})
"""Channels of which the first of several listeners claims; the others hear of it a little later, for it may have stopped."""
UNHURRIED: Final = frozenset({LOG})
"""Their listeners have a pace of their own, slower than a waker's."""
