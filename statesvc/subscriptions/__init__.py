"""Subscriptions: who is notified of what, where it is sent, and with which secrets it is signed."""
