"""What the read API answers with, without HTTP: queries over the projections and the log, and the JSON documents made of their rows."""
