"""Getting to the database: the embedded server, migrations, connections, and what its errors
mean.
"""
