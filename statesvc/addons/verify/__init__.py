"""Verifying the whole log: entries against batches, batches against the tree, the tree against its signed heads and one stored elsewhere.

Believes nothing in the database but what a signature vouches for, and names the places that are wrong.
"""
