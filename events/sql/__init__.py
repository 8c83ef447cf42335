"""How SQL gets from `.sql` files to the database; knows no table."""
