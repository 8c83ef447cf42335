"""Re-reading history: stored messages by today's code, appended as corrections."""
