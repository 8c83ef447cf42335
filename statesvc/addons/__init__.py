"""What may be left out of the service. The core imports none of it; each package here stands beside the others."""
