"""The Merkle tree over the log's leaf hashes (RFC 9162 section 2.1, the tree of RFC 6962): growth,
proofs, and their verification. Pure.
"""
