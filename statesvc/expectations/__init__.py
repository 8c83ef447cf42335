"""What does not happen: shipments that are looked at when something expected of them is overdue, and what is observed then."""
