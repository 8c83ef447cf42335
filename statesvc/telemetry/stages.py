"""The stages of a message, as metrics and spans name them."""

from enum import StrEnum


class Stage(StrEnum):
    """The stages of a message. A span is named `statesvc.<stage>`."""

    INGEST = "ingest"
    CLAIM = "claim"
    NORMALIZE = "normalize"
    APPEND = "append"
    PROJECT = "project"
    SETTLE = "settle"
    PROCESS = "process"
    """A message from its claim to the commit that settled it, through the batch's stages."""
    DELIVER = "deliver"
