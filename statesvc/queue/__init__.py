"""The inbox as the Python workers speak its claim protocol; the functions
themselves are in the database.
"""
