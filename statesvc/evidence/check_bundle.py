"""Verifying a bundle, with the log's public key and nothing else. Pure: no database, no network, no clock."""

import base64
import binascii
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from events.entry.kinds import FIRST_EPOCH
from events.identity.ids import shipment_id as id_of
from events.identity.recipe import DERIVED
from events.identity.recipes import derives
from events.merkle.checkpoint import Checkpoint, NoteError, VerifierKey, open_checkpoint
from events.merkle.proof import verify_consistency, verify_inclusion
from projections.row import ShipmentRow, rebuilt_row
from statesvc.delivery.attempt_part import SentBody, opened_part, parts_by_number
from statesvc.evidence.back_dated import BACK_DATED, back_dated_entries, is_plausible
from statesvc.evidence.bundle import FORMAT, SEAL, SEALED_ORIGIN, Bundle, attempts_of, digest_of
from statesvc.log.timestamp import StampError, Trust, check_stamp, read_stamp
from statesvc.shipments.notification_trail import LoggedTry, NotificationKey, notifications_of

_STATED = tuple(
    name
    for name in ShipmentRow._fields
    if name not in {"shipment_id", "state", "number", "first_recorded_at", "signed_by_event_id", "promised_until", "lane", "due_at"}
)


@dataclass(frozen=True, slots=True)
class BundleFlaw:
    """What does not hold, and where in the bundle (a JSON pointer)."""

    pointer: str
    why: str


class _NotCheckableError(Exception):
    """Ends a check: without this part the rest can not be checked."""

    def __init__(self, pointer: str, why: str) -> None:
        super().__init__(why)
        self.flaw = BundleFlaw(pointer, why)


def check(document: bytes, keys: Sequence[VerifierKey], *, trust: Trust | None = None) -> list[BundleFlaw]:
    """Everything that does not hold; empty: the bundle is what the holder of these keys sealed, and its entries are in their log."""
    try:
        bundle = orjson.loads(document)
    except orjson.JSONDecodeError:
        return [BundleFlaw("", "not JSON")]
    if not isinstance(bundle, dict) or bundle.get("format") != FORMAT:
        return [BundleFlaw("/format", f"not a bundle of the format {FORMAT}")]
    try:
        return list(_flaws(bundle, keys, trust))
    except _NotCheckableError as ended:
        return [ended.flaw]
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        return [BundleFlaw("", f"not the shape of {FORMAT} ({type(error).__name__})")]


def remarks(document: bytes) -> list[BundleFlaw]:
    """What a human should look at in a bundle that `check` finds nothing wrong with: sealed as it stands, and strange."""
    bundle = orjson.loads(document)
    documents = [orjson.loads(entry["canonical"]) for entry in bundle["entries"]]
    return [
        BundleFlaw(
            f"/entries/{place}", f"recorded {documents[place]['recorded_at']}, but what was recorded {latest} stands before it in the log"
        )
        for place, latest in back_dated_entries(bundle["entries"], documents)
    ]


def _flaws(bundle: Bundle, keys: Sequence[VerifierKey], trust: Trust | None) -> Iterator[BundleFlaw]:
    head = _opened("/log/checkpoint", bundle["log"]["checkpoint"], keys)
    seal = _opened(f"/{SEAL}", bundle[SEAL], keys)
    if seal.root != digest_of(bundle) or seal.size != len(bundle["entries"]) or seal.origin != head.log + SEALED_ORIGIN:
        yield BundleFlaw(f"/{SEAL}", "the bundle is not the one that was sealed: something in it was changed")
    yield from _as_of(bundle, head, keys)
    yield from _stamp(bundle, head, keys, trust)
    documents = [orjson.loads(entry["canonical"]) for entry in bundle["entries"]]
    for place, (entry, document) in enumerate(zip(bundle["entries"], documents, strict=True)):
        yield from _entry(f"/entries/{place}", entry, document, head)
    indexes = [entry["index"] for entry in bundle["entries"]]
    if indexes != sorted(set(indexes)):
        yield BundleFlaw("/entries", "an entry is repeated, or out of order")
    yield from _chain(bundle, documents)
    yield from _bodies(bundle, documents)
    yield from _sent(bundle, documents)


def _as_of(bundle: Bundle, head: Checkpoint, keys: Sequence[VerifierKey]) -> Iterator[BundleFlaw]:
    """That the log had been signed with these entries and no more, and only grew since."""
    stated = bundle.get("as_of")
    if stated is None:
        return
    signed = _opened("/as_of/checkpoint", stated["checkpoint"], keys)
    path = [base64.b64decode(node, validate=True) for node in stated["consistency"]]
    if signed.size != stated["log_index"] + 1:
        yield BundleFlaw("/as_of/log_index", "is not that of the last entry which the head was signed for")
    if not verify_consistency(first=signed.size, second=head.size, path=path, first_root=signed.root, second_root=head.root):
        yield BundleFlaw("/as_of/consistency", "does not prove that the log begins with the one that was signed then")
    if any(entry["index"] >= signed.size for entry in bundle["entries"]):
        yield BundleFlaw("/as_of", "an entry was sealed later")


def _stamp(bundle: Bundle, head: Checkpoint, keys: Sequence[VerifierKey], trust: Trust | None) -> Iterator[BundleFlaw]:
    """That an authority saw a beginning of this log, and when. Who signed is checked where the authority's certificate is given."""
    stated = bundle["log"].get("stamp")
    if stated is None:
        if trust is not None:
            yield BundleFlaw("/log", "bears no time stamp")
        return
    pointer = "/log/stamp"
    stamped = _opened(f"{pointer}/checkpoint", stated["checkpoint"], keys)
    path = [base64.b64decode(node, validate=True) for node in stated["consistency"]]
    if not verify_consistency(first=stamped.size, second=head.size, path=path, first_root=stamped.root, second_root=head.root):
        yield BundleFlaw(f"{pointer}/consistency", "does not prove that the log begins with the one that was stamped")
    token = base64.b64decode(stated["token"], validate=True)
    try:
        stamp = read_stamp(token, stated["checkpoint"]) if trust is None else check_stamp(token, stated["checkpoint"], trust)
    except StampError as error:
        yield BundleFlaw(f"{pointer}/token", str(error))
        return
    if (stamp.stamped_at.isoformat(), stamp.authority) != (stated["stamped_at"], stated["authority"]):
        yield BundleFlaw(pointer, "says another time or authority than the stamp itself")


def _opened(pointer: str, note: str, keys: Sequence[VerifierKey]) -> Checkpoint:
    try:
        return open_checkpoint(note, keys).checkpoint
    except NoteError as error:
        raise _NotCheckableError(pointer, str(error)) from error


def _entry(pointer: str, entry: Mapping[str, Any], document: Mapping[str, Any], head: Checkpoint) -> Iterator[BundleFlaw]:
    leaf = hashlib.sha256(b"\x00" + entry["canonical"].encode()).digest()
    if leaf.hex() != entry["leaf_hash"]:
        yield BundleFlaw(f"{pointer}/leaf_hash", "is not the hash of the entry")
    path = [base64.b64decode(node, validate=True) for node in entry["proof"]]
    if not verify_inclusion(leaf, index=entry["index"], size=head.size, path=path, root=head.root):
        yield BundleFlaw(f"{pointer}/proof", "does not lead to the signed root: the entry is not at this place in the log")
    if document.get("epoch", FIRST_EPOCH) > head.epoch:
        yield BundleFlaw(f"{pointer}/canonical", f"is of epoch {document['epoch']} of the log, the checkpoint of epoch {head.epoch}")
    if document["entry"] != entry["kind"]:
        yield BundleFlaw(f"{pointer}/kind", f"the entry says {document['entry']}")
    if BACK_DATED in entry and not is_plausible(entry, document):
        yield BundleFlaw(f"{pointer}/{BACK_DATED}", "is no later than the entry itself")
    part = entry["part"]
    if part is not None and _digest(part) != document.get("part_commitment"):
        yield BundleFlaw(f"{pointer}/part", "is not the part that the entry is committed to")


def _chain(bundle: Bundle, documents: Sequence[Mapping[str, Any]]) -> Iterator[BundleFlaw]:
    """The shipment's events, from its first: none missing between, none of another, and the state that they add up to."""
    stated = bundle["shipment"]
    wanted = str(id_of(stated["carrier_id"], stated["tracking_number"], stated["discriminator"]))
    if stated["shipment_id"] != wanted:
        yield BundleFlaw("/shipment/shipment_id", "is not the id of this carrier, number and discriminator")
    previous = bytes(32).hex()
    history: list[bytes] = []
    for place, (entry, document) in enumerate(zip(bundle["entries"], documents, strict=True)):
        if document["entry"] != "event":
            continue
        pointer = f"/entries/{place}"
        if document["shipment_id"] != wanted:
            yield BundleFlaw(pointer, "an event of another shipment")
        if document["version"] != len(history) + 1 or document["previous_hash"] != previous:
            yield BundleFlaw(pointer, f"event {len(history) + 1} of the shipment is missing, or was changed")
        if document["event_id"].startswith(DERIVED) and not derives(document):
            yield BundleFlaw(pointer, "its id is not the one that follows from what it states")
        previous = entry["leaf_hash"]
        history.append(entry["canonical"].encode())
    if not history:
        yield BundleFlaw("/entries", "no event")
        return
    observations = [entry["canonical"].encode() for entry in bundle["entries"] if entry["kind"] == "observation"]
    row = rebuilt_row(UUID(wanted), [*history, *observations])
    added_up = orjson.loads(orjson.dumps({name: getattr(row, name) for name in _STATED}))
    for name in _STATED:
        if stated[name] != added_up[name]:
            yield BundleFlaw(f"/shipment/{name}", f"the events add up to {added_up[name]!r}")


def _bodies(bundle: Bundle, documents: Sequence[Mapping[str, Any]]) -> Iterator[BundleFlaw]:
    commitments = {
        document["message_id"]: document["body_commitment"]
        for document in documents
        if "body_commitment" in document and "message_id" in document
    }
    for place, message in enumerate(bundle["messages"]):
        if message["message_id"] not in commitments:
            yield BundleFlaw(f"/messages/{place}", "no event of the bundle came with this message")
        elif message["body"] is not None and _digest(message["body"]) != commitments[message["message_id"]]:
            yield BundleFlaw(f"/messages/{place}/body", "is not the body that its events are committed to")


def _sent(bundle: Bundle, documents: Sequence[Mapping[str, Any]]) -> Iterator[BundleFlaw]:
    """What subscribers were sent: to whom, by the fan-outs; the body of each try, opened by the salt in the part of its entry."""
    paired = [(document, (f"/entries/{place}", bundle["entries"][place])) for place, document in enumerate(documents)]
    leaves = {document["version"]: entry["leaf_hash"] for document, (_, entry) in paired if document["entry"] == "event"}
    fanouts, ends = ([pair for pair in paired if pair[0]["entry"] == kind] for kind in ("fanout", "attempt"))
    observed = {entry["leaf_hash"] for document, (_, entry) in paired if document["entry"] == "observation"}
    for document, (pointer, _) in fanouts:
        is_known = document["event"] in observed if document["sequence"] < 0 else leaves.get(document["sequence"]) == document["event"]
        if not is_known:
            yield BundleFlaw(pointer, "names an event or observation that the bundle does not have")
    notified = notifications_of(fanouts, ends)
    for document, (pointer, _) in ends:
        one = notified.get(NotificationKey(document["sequence"], document["subscription_id"]))
        if one is None or one.webhook_id != document["webhook_id"]:
            yield BundleFlaw(pointer, "no fan-out names this notification")
    bodies = {key: sent["body"] for sent in bundle["sent"] for key in attempts_of(sent)}
    for key, one in notified.items():
        for each in one.tries:
            body = bodies.get((one.webhook_id, each.document["number"]))
            if body is not None and not _fits(key, each, body):
                yield BundleFlaw(each.entry[0], "another body was sent than the bundle says")


def _fits(key: NotificationKey, one: LoggedTry, body: str) -> bool:
    """Whether a try was committed to this body, as far as its part is shown."""
    encoded = one.entry[1]["part"]
    if encoded is None:
        return True
    part = parts_by_number(opened_part(base64.b64decode(encoded)), key.sequence if one.covered else None).get(one.document["number"])
    if part is None:
        return True
    committed: bool = hashlib.sha256(SentBody.of(part).salt + body.encode()).hexdigest() == one.document["body_commitment"]
    return committed


def _digest(encoded: str) -> str | None:
    try:
        return hashlib.sha256(base64.b64decode(encoded, validate=True)).hexdigest()
    except binascii.Error:
        return None
