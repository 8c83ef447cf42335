"""Getting to the database: the embedded server, migrations, connections, and the meaning of its
errors.
"""
