"""Reading carriers' bodies: lists, texts, times and places. Pure; independent of any carrier."""
