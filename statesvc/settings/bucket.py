"""A place in an S3-compatible store, in settings `s3://bucket/prefix?endpoint=URL&region=NAME`."""

from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import parse_qs, urlsplit

_SCHEME: Final = "s3"


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Bucket:
    """Bucket `name`, below `prefix`.

    `endpoint` empty: Amazon's own. Credentials come as AWS has them.
    """

    name: str
    prefix: str
    endpoint: str
    region: str

    @classmethod
    def parse(cls, place: str) -> Self:
        """Parse a place. Raises ValueError."""
        parts = urlsplit(place)
        # credentials in a place would be printed wherever the place is
        if parts.scheme != _SCHEME or not parts.netloc or parts.username is not None:
            raise ValueError("neither a folder nor s3://bucket/prefix")
        options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        # refused, not ignored: a misspelt option would lead to another store
        if options.keys() - {"endpoint", "region"}:
            raise ValueError(
                "an s3:// place takes ?endpoint= and ?region= alone; credentials come as AWS has"
                " them"
            )
        return cls(
            name=parts.netloc,
            prefix=parts.path.strip("/"),
            endpoint=options.get("endpoint", ""),
            region=options.get("region", "us-east-1"),
        )

    def __str__(self) -> str:
        return f"{_SCHEME}://{self.name}/{self.prefix}".rstrip("/")


def checked_location(place: str) -> str:
    """Return the place, if it is a folder or a bucket. Raises ValueError."""
    if "://" in place:
        Bucket.parse(place)
    return place
