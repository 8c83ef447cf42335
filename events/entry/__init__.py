"""Entries of the log: what a batch of statements appends, their canonical bytes and their leaf hashes. Pure."""
