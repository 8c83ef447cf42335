"""Repairing what went wrong, and making data unreadable: dead letters, renormalizing, erasure, key rotation."""
