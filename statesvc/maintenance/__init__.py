"""Upkeep that any worker may do at any time: partitions ahead, expired receipts, attempts and workers."""
