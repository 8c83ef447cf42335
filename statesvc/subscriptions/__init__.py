"""Subscriptions: their filters, targets and secrets."""
