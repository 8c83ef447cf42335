"""Verification of a bundle with the log's public key alone. Pure: no database, network or clock.

The verifier is `verify_evidence.py`, the file in the zip. This module adds checks that need the
service's own code.
"""

import base64
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
from events.merkle.checkpoint import (
    Checkpoint,
    NoteError,
    VerifierKey,
    cosignature,
    open_checkpoint,
    second_signature_fault,
)
from events.merkle.proof import verify_consistency
from events.merkle.proof_forms import check_receipt, check_tlog_proof
from projections.row import ShipmentRow, rebuilt_row
from statesvc.addons.evidence.back_dated import BACK_DATED, back_dated_entries, is_plausible
from statesvc.addons.evidence.bundle import FORMAT, Bundle, attempts_of, inclusion_of, proof_files
from statesvc.addons.evidence.verify_evidence import all_flaws, read_keys
from statesvc.delivery.attempt_part import SentBody, opened_part, parts_by_number
from statesvc.log.timestamp import StampError, Trust, check_stamp, read_stamp
from statesvc.shipments.notification_trail import LoggedTry, NotificationKey, notifications_of

_STATED = tuple(
    name
    for name in ShipmentRow._fields
    if name
    not in {
        "shipment_id",
        "state",
        "number",
        "first_recorded_at",
        "signed_by_event_id",
        "promised_until",
        "lane",
        "due_at",
    }
)


@dataclass(frozen=True, slots=True)
class BundleFlaw:
    """A fault, and where in the bundle it is (a JSON pointer)."""

    pointer: str
    why: str


def check(
    document: bytes,
    keys: Sequence[VerifierKey],
    *,
    trust: Trust | None = None,
    files: Mapping[str, bytes] | None = None,
    witnesses: Sequence[VerifierKey] = (),
) -> list[BundleFlaw]:
    """Return all flaws; none: the holder of these keys sealed it, and its entries are in their log.

    Runs the zip's verifier and the service's own checks. `files`: the other files by name.
    `witnesses`: who must have cosigned the head.
    """
    try:
        bundle = orjson.loads(document)
    except orjson.JSONDecodeError:
        return [BundleFlaw("", "not JSON")]
    # before the flaws, which would be about fields that another format does not have
    if not isinstance(bundle, dict) or bundle.get("format") != FORMAT:
        return [BundleFlaw("/format", f"not a bundle of the format {FORMAT}")]
    found = [
        BundleFlaw("", why)
        for why in all_flaws(bundle, read_keys([str(key) for key in keys]), dict(files or {}))
    ]
    try:
        return [
            *found,
            *_flaws(bundle, keys, trust),
            *_standard_proofs(bundle, keys, files or {}),
            *_cosignatures(bundle, witnesses),
        ]
    # anybody may have made the file: a shape that no bundle has is a flaw, never a crash
    except (AttributeError, IndexError, KeyError, NoteError, TypeError, ValueError) as error:
        return found or [BundleFlaw("", f"not the shape of {FORMAT} ({type(error).__name__})")]


def remarks(document: bytes) -> list[BundleFlaw]:
    """Return remarks for a human about a bundle without flaws: sealed, but strange."""
    bundle = orjson.loads(document)
    documents = [orjson.loads(entry["canonical"]) for entry in bundle["entries"]]
    return [
        BundleFlaw(
            f"/entries/{place}",
            f"recorded {documents[place]['recorded_at']}, but what was recorded {latest} stands"
            " before it in the log",
        )
        for place, latest in back_dated_entries(bundle["entries"], documents)
    ]


def _flaws(
    bundle: Bundle, keys: Sequence[VerifierKey], trust: Trust | None
) -> Iterator[BundleFlaw]:
    """Yield the flaws that the zip's verifier leaves out.

    Of the time stamp, of derived ids and states, and of the fan-outs' receivers.
    """
    head = open_checkpoint(bundle["log"]["checkpoint"], keys).checkpoint
    log = bundle["log"]
    fault = second_signature_fault(
        log["checkpoint"],
        log.get("second_signature"),
        trusted=keys,
        stated=map(VerifierKey.parse, log.get("cosigners", ())),
    )
    if fault is not None:
        yield BundleFlaw("/log/second_signature", fault)
    yield from _stamp(bundle, head, keys, trust)
    documents = [orjson.loads(entry["canonical"]) for entry in bundle["entries"]]
    for place, (entry, document) in enumerate(zip(bundle["entries"], documents, strict=True)):
        # an entry of a later epoch is of a log that forked after this head
        if document.get("epoch", FIRST_EPOCH) > head.epoch:
            why = (
                f"is of epoch {document['epoch']} of the log, the checkpoint of epoch {head.epoch}"
            )
            yield BundleFlaw(f"/entries/{place}/canonical", why)
        if BACK_DATED in entry and not is_plausible(entry, document):
            yield BundleFlaw(f"/entries/{place}/{BACK_DATED}", "is no later than the entry itself")
    yield from _state(bundle, documents)
    yield from _messages(bundle, documents)
    yield from _sent(bundle, documents)


def _standard_proofs(
    bundle: Bundle, keys: Sequence[VerifierKey], files: Mapping[str, bytes]
) -> Iterator[BundleFlaw]:
    """Check the proofs in standard forms that lie beside the bundle."""
    note = bundle["log"]["checkpoint"]
    for entry in bundle["entries"]:
        leaf_hash = bytes.fromhex(entry["leaf_hash"])
        tlog_file, cose_file = proof_files(entry)
        for name in {tlog_file, cose_file} & files.keys():
            try:
                if name == tlog_file:
                    check_tlog_proof(files[name].decode(), leaf_hash, keys)
                else:
                    check_receipt(files[name], leaf_hash, inclusion_of(entry), note, keys)
            except ValueError as error:
                yield BundleFlaw(f"/{name}", str(error))


def _cosignatures(bundle: Bundle, witnesses: Sequence[VerifierKey]) -> Iterator[BundleFlaw]:
    log = bundle["log"]
    for witness in witnesses:
        try:
            cosignature(log["checkpoint"], log.get("cosignatures") or "", witness)
        except NoteError as error:
            yield BundleFlaw("/log/cosignatures", f"witness {witness.name}: {error}")


def _stamp(
    bundle: Bundle, head: Checkpoint, keys: Sequence[VerifierKey], trust: Trust | None
) -> Iterator[BundleFlaw]:
    """Check that an authority saw a beginning of this log, and when.

    Who signed is checked where the authority's certificate is given.
    """
    stated = bundle["log"].get("stamp")
    if stated is None:
        if trust is not None:
            # only where the caller names an authority: stamps are optional otherwise
            yield BundleFlaw("/log", "bears no time stamp")
        return
    pointer = "/log/stamp"
    stamped = open_checkpoint(stated["checkpoint"], keys).checkpoint
    path = [base64.b64decode(node, validate=True) for node in stated["consistency"]]
    if not verify_consistency(
        first=stamped.size,
        second=head.size,
        path=path,
        first_root=stamped.root,
        second_root=head.root,
    ):
        yield BundleFlaw(
            f"{pointer}/consistency",
            "does not prove that the log begins with the one that was stamped",
        )
    token = base64.b64decode(stated["token"], validate=True)
    try:
        stamp = (
            read_stamp(token, stated["checkpoint"])
            if trust is None
            else check_stamp(token, stated["checkpoint"], trust)
        )
    except StampError as error:
        yield BundleFlaw(f"{pointer}/token", str(error))
        return
    if (stamp.stamped_at.isoformat(), stamp.authority) != (
        stated["stamped_at"],
        stated["authority"],
    ):
        yield BundleFlaw(pointer, "says another time or authority than the stamp itself")


def _state(bundle: Bundle, documents: Sequence[Mapping[str, Any]]) -> Iterator[BundleFlaw]:
    """Check that ids follow from their parts, and the state from the events."""
    stated = bundle["shipment"]
    wanted = str(id_of(stated["carrier_id"], stated["tracking_number"], stated["discriminator"]))
    if stated["shipment_id"] != wanted:
        yield BundleFlaw(
            "/shipment/shipment_id", "is not the id of this carrier, number and discriminator"
        )
    for place, document in enumerate(documents):
        if (
            document["entry"] == "event"
            and document["event_id"].startswith(DERIVED)
            and not derives(document)
        ):
            yield BundleFlaw(
                f"/entries/{place}", "its id is not the one that follows from what it states"
            )
    history, observations = (
        [entry["canonical"].encode() for entry in bundle["entries"] if entry["kind"] == kind]
        for kind in ("event", "observation")
    )
    if not history:
        yield BundleFlaw("/entries", "no event")
        return
    row = rebuilt_row(UUID(wanted), [*history, *observations])
    added_up = orjson.loads(orjson.dumps({name: getattr(row, name) for name in _STATED}))
    for name in _STATED:
        if stated[name] != added_up[name]:
            yield BundleFlaw(f"/shipment/{name}", f"the events add up to {added_up[name]!r}")


def _messages(bundle: Bundle, documents: Sequence[Mapping[str, Any]]) -> Iterator[BundleFlaw]:
    named = {document["message_id"] for document in documents if "message_id" in document}
    for place, message in enumerate(bundle["messages"]):
        if message["message_id"] not in named:
            yield BundleFlaw(f"/messages/{place}", "no event of the bundle came with this message")


def _sent(bundle: Bundle, documents: Sequence[Mapping[str, Any]]) -> Iterator[BundleFlaw]:
    """Check the notifications: receivers by the fan-outs, and the body of each try by its salt."""
    paired = [
        (document, (f"/entries/{place}", bundle["entries"][place]))
        for place, document in enumerate(documents)
    ]
    leaves = {
        document["version"]: entry["leaf_hash"]
        for document, (_, entry) in paired
        if document["entry"] == "event"
    }
    fanouts, ends = (
        [pair for pair in paired if pair[0]["entry"] == kind] for kind in ("fanout", "attempt")
    )
    observed = {
        entry["leaf_hash"] for document, (_, entry) in paired if document["entry"] == "observation"
    }
    for document, (pointer, _) in fanouts:
        is_known = (
            document["event"] in observed
            if document["sequence"] < 0
            else leaves.get(document["sequence"]) == document["event"]
        )
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
    """Return whether a try was committed to this body, as far as its part is shown."""
    encoded = one.entry[1]["part"]
    if encoded is None:
        return True
    part = parts_by_number(
        opened_part(base64.b64decode(encoded)), key.sequence if one.covered else None
    ).get(one.document["number"])
    # a part that does not list the try says nothing about its body
    if part is None:
        return True
    committed: bool = (
        hashlib.sha256(SentBody.of(part).salt + body.encode()).hexdigest()
        == one.document["body_commitment"]
    )
    return committed
