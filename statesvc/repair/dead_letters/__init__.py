"""Dead letters: listed and shown here, for the API and the command line alike."""
