"""Sealing, and the keys that a process holds in memory. Pure but for chance (nonces)."""
