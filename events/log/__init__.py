"""The append-only event log: what to append (pure), and how it is read from and written to the database."""
