"""Subscriptions: who wants to know what, where they are told, and with which secrets it is signed."""
