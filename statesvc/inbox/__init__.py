"""The claim protocol as the Python workers speak it; the functions themselves are in the database."""
