"""Making a shipment's personal data unreadable, for ever: its key is destroyed, whatever was sealed under it stays as it is."""
