"""The sealed log as it is read: retained hashes of the tree, signed heads and their keys, entries by index."""
