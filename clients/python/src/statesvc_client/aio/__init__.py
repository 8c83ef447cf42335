"""The asynchronous client, written by hand; `sync` is made from it."""
