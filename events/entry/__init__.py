"""Entries of the log: appends of a batch, their canonical bytes and leaf hashes. Pure."""
