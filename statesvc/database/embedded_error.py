"""Errors that keep the embedded server from running, for the person who starts it."""


class EmbeddedServerError(RuntimeError):
    """The embedded server can't be used; the message gives the reason and the remedy."""


class NoDataError(EmbeddedServerError):
    def __init__(self, data_dir: str) -> None:
        super().__init__(
            f"no statesvc data in {data_dir}; set DATABASE_URL or STATESVC_DATA_DIR, or give"
            " --env-file"
        )


class UnusableFolderError(EmbeddedServerError):
    """The data folder cannot hold a server: its name, another file in its place, or its disk."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{why}; set STATESVC_DATA_DIR to another folder")


class DataInUseError(EmbeddedServerError):
    """Another process serves the same data. `pid` is None where it could not be read."""

    def __init__(self, data_dir: str, pid: int | None) -> None:
        holder = f"process {pid}" if pid else "another process"
        super().__init__(
            f"{data_dir} is in use by {holder}: stop that one first, or set STATESVC_DATA_DIR to"
            " another folder"
        )
        self.pid = pid
