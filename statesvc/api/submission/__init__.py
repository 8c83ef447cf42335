"""`POST /v1/events`: canonical events applied in the request itself, with a verdict for each."""
