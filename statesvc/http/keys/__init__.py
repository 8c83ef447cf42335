"""API keys: how they are stored and looked up, what each may ask, and short-lived tokens made with them."""
