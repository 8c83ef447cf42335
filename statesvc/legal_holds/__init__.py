"""Legal holds: whose bodies outlive every retention, and who said so."""
