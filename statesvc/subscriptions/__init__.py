"""Subscriptions: who wants to know what, where it is sent, and with which secrets it is signed."""
