"""Who types the command, as operator actions in the log name it."""

import getpass


def actor() -> str:
    """`cli:<account>` of this machine."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):
        return "cli"
