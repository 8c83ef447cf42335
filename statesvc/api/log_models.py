"""What the calls about the log take and answer."""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from statesvc.api.models import Hash
from statesvc.api.parameters import Name

FEED_DEFAULT: Final = 100
FEED_MAX: Final = 1_000
INDEX_MAX: Final = 2**62

Index = Annotated[int, Field(ge=0, le=INDEX_MAX)]


class FeedParameters(BaseModel):
    """A stretch of the log."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    after: Annotated[
        int, Field(ge=-1, le=INDEX_MAX, description="The last index that the reader has. Left out: from the first entry on.")
    ] = -1
    limit: Annotated[int, Field(ge=1, le=FEED_MAX, description="Entries per answer.")] = FEED_DEFAULT


class FeedEntry(BaseModel):
    """One entry of the log."""

    model_config = ConfigDict(extra="forbid")

    index: int
    kind: Literal["event", "conflict", "transition", "attempt", "action"]
    leaf_hash: Annotated[Hash, Field(description="SHA-256 of a zero byte and the entry in canonical JSON (RFC 8785).")]
    sealed_at: AwareDatetime
    entry: Annotated[dict[str, Any], Field(description="All that the entry binds; printed here in its canonical form.")]


class Feed(BaseModel):
    """A stretch of the log, in its order."""

    model_config = ConfigDict(extra="forbid")

    items: list[FeedEntry]
    next_cursor: Annotated[str | None, Field(description="`after` of the next call; null where this was the end for now.")]
    tree_size: Annotated[int, Field(description="How many entries the newest checkpoint covers.")]


class CheckpointParameters(BaseModel):
    """Which head."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    size: Annotated[Index | None, Field(description="The first checkpoint that covers so many entries. Left out: the newest.")] = None


class LogKey(BaseModel):
    """A key that signs, or signed, checkpoints."""

    model_config = ConfigDict(extra="forbid")

    key: Annotated[str, Field(description="C2SP verifier key: name, key id, base64 of type and Ed25519 key.")]
    created_at: AwareDatetime
    retired_at: AwareDatetime | None


class LogKeys(BaseModel):
    """All of them, the first one first."""

    model_config = ConfigDict(extra="forbid")

    items: list[LogKey]
    next_cursor: None


class InclusionParameters(BaseModel):
    """An entry by its index, or an event by its ids."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    index: Index | None = None
    carrier_id: Name | None = None
    event_id: Name | None = None
    size: Annotated[Index | None, Field(description="Below the first checkpoint that covers so many entries. Left out: the newest.")] = None

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        by_event = (self.carrier_id is not None, self.event_id is not None)
        if by_event not in {(True, True), (False, False)} or (self.index is None) != by_event[0]:
            raise ValueError("give `index`, or `carrier_id` and `event_id`")
        return self


class Inclusion(BaseModel):
    """Proof that an entry is in the log (RFC 9162 section 2.1.3)."""

    model_config = ConfigDict(extra="forbid")

    index: int
    tree_size: int
    leaf_hash: Hash
    path: Annotated[list[Hash], Field(description="The lowest sibling first.")]
    root: Hash
    checkpoint: Annotated[str, Field(description="The signed note that says this size and root.")]


class ConsistencyParameters(BaseModel):
    """Two sizes of the log."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    from_size: Annotated[int, Field(alias="from", ge=0, le=INDEX_MAX, description="Size of the older tree.")]
    to_size: Annotated[Index | None, Field(alias="to", description="Size of the newer tree. Left out: of the newest checkpoint.")] = None


class Consistency(BaseModel):
    """Proof that the newer tree begins with the older one (RFC 9162 section 2.1.4)."""

    model_config = ConfigDict(extra="forbid")

    from_size: Annotated[int, Field(alias="from")]
    to_size: Annotated[int, Field(alias="to")]
    from_root: Hash
    to_root: Hash
    path: list[Hash]
    checkpoint: Annotated[str, Field(description="The newest signed note; covers `to`.")]
