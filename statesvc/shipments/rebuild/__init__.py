"""Building a projection again from the log, beside live traffic."""
