"""Repairing what went wrong: dead letters, renormalizing, codes that operators teach."""
