"""Building a projection again from the log, alongside live traffic."""
