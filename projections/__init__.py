"""What the events mean: the life cycle, a shipment's state as a pure fold, and what a reader is shown of it."""
