"""What the service reports about itself: metrics, spans and log lines, none of which ever holds personal data."""
