"""`statesvc doctor`: one check after the other, each of which answers with findings."""
