"""Client connections: their bounds, and their move to another process of this machine."""
