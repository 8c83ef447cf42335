"""Re-reading history: what the stored messages say by the code of today, appended as corrections."""
