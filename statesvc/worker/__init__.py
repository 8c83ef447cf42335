"""The worker: claim, normalize, append, project, settle."""
