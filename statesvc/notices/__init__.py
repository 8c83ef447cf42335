"""Notices: what the service did or saw by itself, for its operator."""
