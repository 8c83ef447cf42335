"""The sealed log: its entries by index, the hashes of its tree, signed heads and their keys."""
