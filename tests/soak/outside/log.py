"""The log as the documentation describes it, checked by own code: canonical JSON, leaf hashes,
chains, the tree, its signed heads.
"""

import base64
import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tests.soak.outside.client import Client

PAGE = 1000


class Entry(NamedTuple):
    """One leaf as the feed showed it."""

    place: int
    kind: str
    leaf_hash: bytes
    document: dict[str, Any]


async def read_feed(client: Client) -> list[Entry]:
    """Read all of it, page by page."""
    found: list[Entry] = []
    cursor: str | None = None
    while True:
        status, page = await client.get(
            f"/v1/feed?limit={PAGE}" + ("" if cursor is None else f"&after={cursor}")
        )
        assert status == 200, page
        found += [
            Entry(item["index"], item["kind"], bytes.fromhex(item["leaf_hash"]), item["entry"])
            for item in page["items"]
        ]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


def canonical(document: object) -> bytes:
    """Encode by RFC 8785 what entries hold: no fractions, and names in ASCII."""
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def root_of(leaves: Sequence[bytes]) -> bytes:
    """Compute the root by RFC 9162, section 2.1.1, level by level: the odd one at the end of a
    level goes up as it is.
    """
    level = list(leaves)
    if not level:
        return hashlib.sha256(b"").digest()
    while len(level) > 1:
        pairs = [
            hashlib.sha256(b"\x01" + level[at] + level[at + 1]).digest()
            for at in range(0, len(level) - 1, 2)
        ]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]


class Head(NamedTuple):
    """Content of a signed note."""

    origin: str
    size: int
    root: bytes


def open_head(note: str, key: str) -> Head:
    """Open a head. Raises where no signature of `key` (name+id+base64) stands under the note."""
    name, _, encoded = key.split("+", 2)
    material = base64.b64decode(encoded)
    text, _, signatures = note.partition("\n\n")
    text += "\n"
    key_id = hashlib.sha256(f"{name}\n".encode() + material).digest()[:4]
    for line in signatures.splitlines():
        dash, signer, signature = line.split(" ")
        raw = base64.b64decode(signature)
        if dash == "\N{EM DASH}" and signer == name and raw[:4] == key_id:
            try:
                Ed25519PublicKey.from_public_bytes(material[1:]).verify(raw[4:], text.encode())
            except InvalidSignature:
                continue
            origin, size, root, *_ = text.splitlines()
            return Head(origin, int(size), base64.b64decode(root))
    raise ValueError("no signature of the log's key")


@dataclass(slots=True)
class CheckedLog:
    """`broken`: what is wrong, by what it breaks.

    Events and transitions by shipment, in the order of the log.
    """

    entries: list[Entry]
    broken: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    events: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    transitions: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    conflicts: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    hashes: dict[tuple[str, int], bytes] = field(default_factory=dict)


def shipment_id(carrier_id: str, number: str, discriminator: str) -> str:
    """Derive the id as the contract does."""
    digest = hashlib.sha256(f"s1\x1f{carrier_id}\x1f{number}\x1f{discriminator}".encode()).digest()
    return str(UUID(bytes=digest[:16]))


def check_log(entries: list[Entry]) -> CheckedLog:
    """Check everything that the entries say about themselves."""
    log = CheckedLog(entries)
    seen: set[tuple[str, str]] = set()
    recorded: dict[str, datetime] = {}
    for place, entry in enumerate(entries):
        if entry.place != place:
            log.broken["indexes with gaps or repeats"].append((place, entry.place))
        if hashlib.sha256(b"\x00" + canonical(entry.document)).digest() != entry.leaf_hash:
            log.broken["leaf hashes that are not those of their bytes"].append(entry.place)
        document, kind = entry.document, entry.kind
        if kind != document["entry"]:
            log.broken["entries listed as another kind"].append(entry.place)
        if kind == "event":
            _check_event(log, entry, seen)
            at = datetime.fromisoformat(document["recorded_at"])
            if at <= recorded.get(document["shipment_id"], datetime.min.replace(tzinfo=at.tzinfo)):
                log.broken["events recorded at or before the one before"].append(entry.place)
            recorded[document["shipment_id"]] = at
        elif kind == "conflict":
            log.conflicts[document["shipment_id"]].append(document)
        elif kind == "transition":
            log.transitions[document["shipment_id"]].append(document)
    for shipment, transitions in log.transitions.items():
        _check_transitions(log, shipment, transitions)
    return log


def _check_event(log: CheckedLog, entry: Entry, seen: set[tuple[str, str]]) -> None:
    event = entry.document
    shipment, version = event["shipment_id"], event["version"]
    before = log.hashes.get((shipment, version - 1), bytes(32))
    if version != len(log.events[shipment]) + 1:
        log.broken["versions with gaps, repeats, or out of order"].append((shipment, version))
    if event["previous_hash"] != before.hex():
        log.broken["chains that do not name the leaf before"].append((shipment, version))
    if shipment != shipment_id(
        event["carrier_id"], event["tracking_number"], event["discriminator"]
    ):
        log.broken["shipment ids that are not those of their numbers"].append((shipment, version))
    if (event["carrier_id"], event["event_id"]) in seen:
        log.broken["event ids that are twice in the log"].append(
            (event["carrier_id"], event["event_id"])
        )
    seen.add((event["carrier_id"], event["event_id"]))
    log.hashes[shipment, version] = entry.leaf_hash
    log.events[shipment].append(event)


def _check_transitions(log: CheckedLog, shipment: str, transitions: list[dict[str, Any]]) -> None:
    status, sequence = "unknown", 0
    for transition in transitions:
        if (
            transition["from"] != status
            or transition["to"] == status
            or transition["sequence"] <= sequence
        ):
            log.broken["transitions that do not follow from each other"].append(
                (shipment, transition["sequence"])
            )
        status, sequence = transition["to"], transition["sequence"]
        events = log.events[shipment]
        if sequence > len(events) or events[sequence - 1]["event_id"] != transition["event_id"]:
            log.broken["transitions that name no event"].append((shipment, sequence))


def check_heads(log: CheckedLog, notes: Sequence[str], key: str) -> int:
    """Check all heads that were ever fetched: each signed, each the root of a beginning of the log.

    Return the size of the newest.
    """
    leaves = [entry.leaf_hash for entry in log.entries]
    newest, origins = 0, set()
    for note in dict.fromkeys(notes):
        try:
            head = open_head(note, key)
        except ValueError as error:
            log.broken["heads without a signature"].append((str(error), note))
            continue
        origins.add(head.origin)
        if head.size > len(leaves) or root_of(leaves[: head.size]) != head.root:
            log.broken["heads that are not of a beginning of the log"].append(head.size)
        if head.size < newest:
            log.broken["heads that got smaller"].append((newest, head.size))
        newest = max(newest, head.size)
    if len(origins) > 1:
        log.broken["origins of one log"].append(sorted(origins))
    return newest
