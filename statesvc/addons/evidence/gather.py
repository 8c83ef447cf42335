"""Reading of everything about a shipment in one snapshot, up to the newest signed head."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import orjson
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring, ended_context, part_context
from events.crypto.sealing import SealError, SealingKey
from events.entry.kinds import leaf_hash_of
from events.merkle.checkpoint import NoteSigner, read_checkpoint
from events.merkle.proof_forms import cose_receipt, tlog_proof
from statesvc.addons.evidence.back_dated import BACK_DATED, read_back_dated
from statesvc.addons.evidence.bundle import (
    ERASED,
    FORMAT,
    NONE,
    OPENED,
    SHARED,
    UNAVAILABLE,
    WITHHELD,
    Bundle,
    inclusion_of,
    proof_files,
    sealed,
)
from statesvc.addons.evidence.dispute_fields import dispute_fields
from statesvc.addons.evidence.evidence_report import page_one_of
from statesvc.addons.evidence.merchant_statement import MerchantStatement
from statesvc.addons.evidence.notifications import Reader, read_sent
from statesvc.bodies.find_bodies import ArchiveUnavailableError, find_bodies
from statesvc.bodies.sealed_message import open_committed, unwrap_body_key
from statesvc.database.queries import queries, timestamps, uuids
from statesvc.files.archive_folder import ArchivePath
from statesvc.log.checkpoints import SignedHead, cosigned_head, covering_head, latest_head
from statesvc.log.event_store import read_streams
from statesvc.log.json_compression import decompress_json, open_part
from statesvc.log.proofs import inclusion_paths, prove_consistency
from statesvc.log.signing_keys import open_signers, read_keys
from statesvc.log.timestamp_store import vouching_stamp
from statesvc.shipments.as_of import Horizon, find_shipment_at, horizon_at
from statesvc.shipments.audit_trail import read_receivers
from statesvc.shipments.find import (
    FoundShipment,
    OtherDiscriminators,
    StoredShipment,
    listed,
    recorded_outside,
)
from statesvc.shipments.personal import Opener

_SQL = queries("statesvc.addons.evidence", "evidence")
Connection = AsyncConnection[Any]
Keys = Mapping[UUID, SealingKey | None]
# Members that a bundle has of the other shipments of the number.
_OF_OTHERS: Final = ("shipment_id", "discriminator", "status", "last_event_at")


class NothingSealedError(RuntimeError):
    """There is no signed head yet, or the shipment has no sealed entry: evidence
    without proof would be none.
    """


class UnknownShipmentError(RuntimeError):
    """No shipment has the number."""


class SeveralShipmentsError(RuntimeError):
    """The number was used more than once, and the request does not choose a parcel."""

    def __init__(self, shipments: Sequence[StoredShipment]) -> None:
        named = "; ".join(
            f"`{shipment.discriminator}`: {shipment.status}, last heard of on"
            f" {shipment.last_event_at.astimezone(UTC):%Y-%m-%d}"
            for shipment in shipments
        )
        super().__init__(
            f"the number was used {len(shipments)} times; say which parcel is meant, by its"
            f" `discriminator`: {named}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleRequest:
    """A request for evidence. `personal`: with personal parts and bodies.

    `as_of`: only entries sealed by then. `statement`: the merchant's, which the bundle repeats
    as such.
    """

    carrier_id: str
    number: str
    discriminator: str | None
    personal: bool
    as_of: datetime | None = None
    statement: MerchantStatement | None = None


@dataclass(frozen=True, slots=True)
class GatheredEvidence:
    """A bundle and its signers."""

    bundle: Bundle
    signers: Sequence[NoteSigner] = field(repr=False)

    def sealed(self, documents: Mapping[str, bytes] | None = None) -> dict[str, Any]:
        """Return the sealed bundle.

        `documents`: files made of it, by name, that its seal is to cover as well.
        """
        digests = {
            name: hashlib.sha256(content).hexdigest() for name, content in (documents or {}).items()
        }
        return sealed(
            {**self.bundle, "documents": digests},
            self.signers,
            origin=self.signers[0].verifier.name,
        )

    def standard_proofs(self) -> dict[str, bytes]:
        """Return each entry's proof in both standard forms, by file name."""
        log = self.bundle["log"]
        head = read_checkpoint(log["checkpoint"])
        files = {}
        for entry in self.bundle["entries"]:
            inclusion = inclusion_of(entry)
            tlog_file, cose_file = proof_files(entry)
            note = log["checkpoint"] + (log["cosignatures"] or "")
            files[tlog_file] = tlog_proof(inclusion, note).encode()
            # one key: the form has room for a single signature
            files[cose_file] = cose_receipt(inclusion, head, self.signers[-1])
        return files


async def gather(
    connection: Connection,
    wanted: BundleRequest,
    keyring: Keyring,
    archive: ArchivePath | None = None,
) -> GatheredEvidence:
    """Gather the bundle in the caller's snapshot. `archive`: of older bodies.

    Raises NothingSealedError, UnknownShipmentError, ContradictionError.
    """
    head = await latest_head(connection)
    if head is None:
        raise NothingSealedError("nothing is sealed yet: is a sealer running?")
    horizon = Horizon(head.tree_size, head.created_at, clamped=False)
    if wanted.as_of is not None:
        horizon = await horizon_at(connection, wanted.as_of)
    found = await _found(connection, wanted, horizon)
    shipment = found.shipment
    cursor = await connection.execute(
        _SQL["entries"],
        {
            **shipment.recorded(),
            **await recorded_outside(connection, shipment),
            "size": horizon.size,
        },
        binary=True,
        prepare=False,
    )
    rows = [
        (index, kind, decompress_json(stored), sealed_part)
        for index, kind, stored, sealed_part in await cursor.fetchall()
    ]
    documents = [orjson.loads(canonical) for _, _, canonical, _ in rows]
    keys = await _keys(connection, keyring, shipment, documents)
    cosigned = await cosigned_head(connection)
    covered = rows[-1][0] + 1 if wanted.as_of is None else horizon.size
    # rather than the newest, where it covers the same entries
    if cosigned is not None and cosigned.tree_size >= covered:
        head = cosigned
    paths = await inclusion_paths(connection, [row[0] for row in rows], head)
    parts = [
        _part(document, sealed_part, keys)
        for document, (*_, sealed_part) in zip(documents, rows, strict=True)
    ]
    # from the whole log: the bundle's own entries need not show the later time
    back_dated = await read_back_dated(connection, [row[0] for row in rows])
    entries = [
        {
            "index": index,
            "kind": kind,
            "leaf_hash": leaf_hash_of(canonical).hex(),
            "canonical": canonical.decode(),
            "proof": [_base64(node) for node in path],
            "part": _base64(part) if wanted.personal and part is not None else None,
            # a part that is erased says so to everyone: that is no personal datum
            "part_state": state if state != OPENED or wanted.personal else WITHHELD,
            **({BACK_DATED: back_dated[index]} if index in back_dated else {}),
        }
        for (index, kind, canonical, _), path, (part, state) in zip(rows, paths, parts, strict=True)
    ]
    reader = Reader(
        opener=Opener(shipment_id=shipment.shipment_id, key=keys.get(shipment.shipment_id)),
        personal=wanted.personal,
    )
    signing = await read_keys(connection)
    signers = open_signers(signing, keyring.master)
    stamp = await _stamp(connection, head, last=rows[-1][0])
    bundle = {
        "format": FORMAT,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "log": {
            "checkpoint": head.note,
            "sealed_at": head.created_at.isoformat(),
            "keys": [str(key.verifier) for key in signing],
            # from here on beside, never among, what 0.1.0's verifiers read
            "cosigners": [str(key.cosigner) for key in signing if key.cosigner is not None],
            "second_signature": head.second_signature,
            "cosignatures": head.cosignatures,
            **({} if stamp is None else {"stamp": stamp}),
        },
        "as_of": None if wanted.as_of is None else await _as_of(connection, horizon, head),
        "stated": None if wanted.statement is None else wanted.statement.salted(),
        "shipment": _plain(
            {**listed(shipment)}
            | {"signed_by": _signer(shipment, documents, parts) if wanted.personal else None}
        ),
        "others": [
            _plain({name: getattr(other, name) for name in _OF_OTHERS}) for other in found.others
        ],
        "entries": entries,
        "messages": await _messages(
            connection, wanted, shipment, documents, keys, keyring=keyring, archive=archive
        ),
        "receivers": {
            subscription_id: receiver.label
            for subscription_id, receiver in (
                await read_receivers(
                    connection,
                    (
                        subscription_id
                        for document in documents
                        if document["entry"] == "fanout"
                        for subscription_id in document["subscriptions"]
                    ),
                )
            ).items()
        },
        "sent": await read_sent(connection, reader, list(zip(documents, parts, strict=True))),
    }
    return GatheredEvidence(
        {**bundle, **dispute_fields(bundle), "page_one": page_one_of(bundle)}, signers
    )


async def _as_of(connection: Connection, horizon: Horizon, head: SignedHead) -> dict[str, Any]:
    """Return the head that was signed by then, and the proof that its log is the beginning of that
    of the entries' proofs.
    """
    signed = await covering_head(connection, horizon.size)
    proof = await prove_consistency(connection, horizon.size, head.tree_size, head)
    return {
        "at": horizon.at.astimezone(UTC).isoformat(),
        "clamped": horizon.clamped,
        "log_index": horizon.size - 1,
        "checkpoint": None if signed is None else signed.note,
        "consistency": [_base64(node) for node in proof.path],
    }


async def _stamp(connection: Connection, head: SignedHead, *, last: int) -> dict[str, Any] | None:
    """Return the time stamp that vouches for the entries, and the proof that its log is the
    beginning of the head's.
    """
    stamped = await vouching_stamp(connection, size=head.tree_size, last=last)
    if stamped is None:
        return None
    proof = await prove_consistency(connection, stamped.tree_size, head.tree_size, head)
    return {
        "checkpoint": stamped.note,
        "token": _base64(stamped.token),
        "stamped_at": stamped.stamped_at.astimezone(UTC).isoformat(),
        "authority": stamped.authority,
        "consistency": [_base64(node) for node in proof.path],
    }


async def _found(connection: Connection, wanted: BundleRequest, horizon: Horizon) -> FoundShipment:
    found = await find_shipment_at(
        connection,
        horizon,
        carrier_id=wanted.carrier_id,
        number=wanted.number,
        discriminator=wanted.discriminator,
    )
    match found:
        # the latest would be a guess, and evidence about the wrong parcel is worse than none
        case FoundShipment() if found.others and wanted.discriminator is None:
            raise SeveralShipmentsError([found.shipment, *found.others])
        case FoundShipment():
            return found
        case OtherDiscriminators():
            raise UnknownShipmentError("the number is known, but never with this discriminator")
        case None:
            by_then = "" if wanted.as_of is None else f" by {horizon.at.isoformat()}"
            raise UnknownShipmentError(
                f"no sealed event of carrier {wanted.carrier_id} named this tracking"
                f" number{by_then}"
            )


async def _keys(
    connection: Connection,
    keyring: Keyring,
    shipment: StoredShipment,
    documents: Sequence[Mapping[str, Any]],
) -> Keys:
    named = {
        UUID(document[name])
        for document in documents
        for name in ("shipment_id", "claimed_shipment_id")
        if name in document
    }
    streams = await (await read_streams(connection, keyring, named | {shipment.shipment_id})).rows()
    return {shipment_id: stream.key for shipment_id, stream in streams.items()}


def _part(
    document: Mapping[str, Any], sealed_part: bytes | None, keys: Keys
) -> tuple[bytes | None, str]:
    """Return the salted personal part of an entry, and why there is none."""
    if sealed_part is None:
        return None, NONE
    shipment_id = UUID(document["shipment_id"])
    if document["entry"] == "attempt":
        last = document["tries"][-1]["number"] if document["tries"] else 0
        context = ended_context(shipment_id, document["webhook_id"], last)
    else:
        context = part_context(shipment_id, document["event_id"])
    content: bytes = sealed_part
    claimed_id = (
        UUID(document["claimed_shipment_id"]) if "claimed_shipment_id" in document else shipment_id
    )
    try:
        if claimed_id != shipment_id and claimed_id in keys:
            claimed = keys[claimed_id]
            # a contradiction is about both shipments: the erasure of either closes it
            if claimed is None:
                return None, ERASED
            if claimed.sealed(content):
                content = claimed.open(content, part_context(claimed_id, document["event_id"]))
        key = keys.get(shipment_id)
        return (None, ERASED) if key is None else (open_part(key, content, context), OPENED)
    except SealError:
        # a part that was changed is no reason to give no evidence: the proof of its entry holds
        return None, UNAVAILABLE


def _signer(
    shipment: StoredShipment,
    documents: Sequence[Mapping[str, Any]],
    parts: Sequence[tuple[bytes | None, str]],
) -> str | None:
    for document, (part, _) in zip(documents, parts, strict=True):
        if (
            document["entry"] == "event"
            and document["event_id"] == shipment.signed_by_event_id
            and part is not None
        ):
            signer: str | None = orjson.loads(part[32:]).get("signed_by")
            return signer
    return None


async def _messages(
    connection: Connection,
    wanted: BundleRequest,
    shipment: StoredShipment,
    documents: Sequence[Mapping[str, Any]],
    keys: Keys,
    *,
    keyring: Keyring,
    archive: ArchivePath | None,
) -> list[dict[str, Any]]:
    """Return the bodies as the carrier sent them.

    One that names other people's shipments too is not handed out.
    """
    received = {
        UUID(document["message_id"]): datetime.fromisoformat(document["received_at"])
        for document in documents
        if document["entry"] in {"event", "conflict"}
    }
    cursor = await connection.execute(
        _SQL["messages"],
        {"message_ids": uuids(list(received)), "received_ats": timestamps(list(received.values()))},
        binary=True,
    )
    rows = await cursor.fetchall()
    messages = []
    try:
        bodies = (
            await find_bodies(connection, archive, list(received.items()))
            if wanted.personal
            else {}
        )
    except ArchiveUnavailableError:
        bodies = {}
    for message_id, received_at, carrier_id, shipments, sealed_key in rows:
        body: bytes | None = None
        stored = bodies.get(message_id)
        if not wanted.personal:
            state = WITHHELD
        # before the key: the body would open, and show other people's parcels
        elif set(shipments) - {shipment.shipment_id}:
            state = SHARED
        elif sealed_key is None or keys.get(shipment.shipment_id) is None:
            state = ERASED
        elif stored is None:
            state = UNAVAILABLE
        else:
            key = unwrap_body_key(
                sealed_key, shipments, message_id=message_id, keys=keys, keyring=keyring
            )
            body = (
                None
                if key is None
                else open_committed(
                    key, stored.sealed, message_id=message_id, committed=stored.commitment
                )
            )
            state = ERASED if body is None else OPENED
        messages.append(
            {
                "message_id": str(message_id),
                "received_at": received_at.astimezone(UTC).isoformat(),
                "carrier_id": carrier_id,
                "body": None if body is None else _base64(body),
                "body_state": state,
            }
        )
    # the rows of messages leave when the files of their bodies have expired
    gone = UNAVAILABLE if wanted.personal else WITHHELD
    messages += [
        {
            "message_id": str(message_id),
            "received_at": received[message_id].astimezone(UTC).isoformat(),
            "carrier_id": shipment.carrier_id,
            "body": None,
            "body_state": gone,
        }
        for message_id in sorted(received.keys() - {row[0] for row in rows})
    ]
    return messages


def _plain(value: Mapping[str, Any]) -> dict[str, Any]:
    """Convert times and ids to text, as JSON has them."""
    document: dict[str, Any] = orjson.loads(orjson.dumps(value))
    return document


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
