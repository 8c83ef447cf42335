"""The domain: the vocabulary, the normalizers, and the append-only event log."""
