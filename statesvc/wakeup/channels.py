"""The channels that wake-ups travel on."""

from typing import Final

INBOX: Final = "statesvc_inbox"
"""Messages may be ready to be claimed by a worker."""
OUTBOX: Final = "statesvc_outbox"
"""Notifications may be ready to be claimed by a notifier."""
