"""Error of a command with a cause other than a defect, for the user at the terminal."""


class CommandError(Exception):
    """An error for the user at the terminal. `exit_code`: 1 the check failed, 2 wrong use."""

    def __init__(self, text: str, *, exit_code: int = 1) -> None:
        super().__init__(text)
        self.exit_code = exit_code
