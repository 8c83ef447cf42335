"""Why the sealer does not go on."""


class RefusalError(RuntimeError):
    """The log is not the one that was published: sealing on would sign two different histories. The message says what is found."""
