"""API keys: storage, lookup, limits, and short-lived tokens made with them."""
