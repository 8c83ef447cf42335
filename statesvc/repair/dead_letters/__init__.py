"""What gave up and waits for a human: listed and shown here, for the API and the command line alike."""
