"""A time on the command line."""

import argparse
from datetime import datetime


def moment(text: str) -> datetime:
    """RFC 3339 with offset; a type for argparse."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError("not a time in RFC 3339") from None
    if found.tzinfo is None:
        raise argparse.ArgumentTypeError("needs an offset, such as Z")
    return found
