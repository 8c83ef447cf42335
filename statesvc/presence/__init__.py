"""Which processes work here, and when each last said that it lives."""
