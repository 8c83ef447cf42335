"""A second verifier of evidence bundles, written from their description alone: standard library and `cryptography`, nothing of ours."""

import base64
import hashlib
import json
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def verify(document: bytes, keys: list[str]) -> str | None:
    """None: it holds. Else the first thing that does not."""
    try:
        bundle = json.loads(document)
        head, origin = note(bundle["log"]["checkpoint"], keys)
        seal, seal_origin = note(bundle["seal"], keys)
        rest = {name: value for name, value in bundle.items() if name != "seal"}
        canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        if seal != (len(bundle["entries"]), sha256(canonical)) or seal_origin != origin + "/evidence":
            return "the seal is not of this bundle"
        for entry in bundle["entries"]:
            leaf = sha256(b"\x00" + entry["canonical"].encode())
            if leaf.hex() != entry["leaf_hash"]:
                return f"entry {entry['index']}: another hash"
            if root(leaf, entry["index"], head[0], [decode(node) for node in entry["proof"]]) != head[1]:
                return f"entry {entry['index']}: not in the log"
        return chain(bundle) or sent(bundle)
    except (KeyError, IndexError, TypeError, ValueError, InvalidSignature) as error:
        return f"malformed: {type(error).__name__}"


def note(text: str, keys: list[str]) -> tuple[tuple[int, bytes], str]:
    """(size, root) and origin of a signed note (C2SP signed-note, tlog-checkpoint), once one of the keys has signed it."""
    body, _, signatures = text.rpartition("\n\n")
    origin, size, encoded, *more = (body + "\n").split("\n")
    if more != [""] or not signatures.endswith("\n"):
        raise ValueError("not a checkpoint")
    known = {}
    for key in keys:
        name, key_id, material = key.split("+", 2)
        known[name, bytes.fromhex(key_id)] = Ed25519PublicKey.from_public_bytes(decode(material)[1:])
    signed = False
    for line in signatures.rstrip("\n").split("\n"):
        dash, name, material = line.split(" ")
        if dash != "—":
            raise ValueError("not a signature line")
        signer = known.get((name, decode(material)[:4]))
        if signer is not None:
            signer.verify(decode(material)[4:], (body + "\n").encode())
            signed = True
    if not signed:
        raise ValueError("nobody that we know has signed it")
    return (int(size), decode(encoded)), origin


def root(leaf: bytes, index: int, size: int, path: list[bytes]) -> bytes | None:
    """The root that a path leads to (RFC 9162, 2.1.3.2), by recursion over the tree's shape."""
    if size == 1:
        return leaf if not path else None
    if not path or not 0 <= index < size:
        return None
    split = 1
    while split * 2 < size:
        split *= 2
    if index < split:
        below = root(leaf, index, split, path[:-1])
        return None if below is None else sha256(b"\x01" + below + path[-1])
    below = root(leaf, index - split, size - split, path[:-1])
    return None if below is None else sha256(b"\x01" + path[-1] + below)


def chain(bundle: dict[str, Any]) -> str | None:
    """The shipment's events follow each other, and what is opened is what was committed to."""
    previous, version, bodies = "00" * 32, 0, {}
    for entry in bundle["entries"]:
        said = json.loads(entry["canonical"])
        if said["entry"] != entry["kind"]:
            return "another kind"
        if entry["part"] is not None and sha256(decode(entry["part"])).hex() != said.get("part_commitment"):
            return "another personal part"
        if "message_id" in said and "body_commitment" in said:
            bodies[said["message_id"]] = said["body_commitment"]
        if entry["kind"] == "event":
            version += 1
            if (said["version"], said["previous_hash"], said["shipment_id"]) != (version, previous, bundle["shipment"]["shipment_id"]):
                return "an event is missing"
            previous = entry["leaf_hash"]
    if version != bundle["shipment"]["version"]:
        return "the last event is missing"
    for message in bundle["messages"]:
        if message["body"] is not None and sha256(decode(message["body"])).hex() != bodies[message["message_id"]]:
            return "another body"
    return None


def sent(bundle: dict[str, Any]) -> str | None:
    """Each attempt was sent the body that the bundle says, where its salt is given."""
    bodies = {(row["webhook_id"], number): row["body"] for row in bundle["sent"] for number in row["attempts"]}
    for entry in bundle["entries"]:
        said = json.loads(entry["canonical"])
        if said["entry"] != "attempt" or entry["part"] is None:
            continue
        salts = {part["number"]: bytes.fromhex(part["body_salt"]) for part in json.loads(decode(entry["part"])[32:])["tries"]}
        for each in said["tries"]:
            body = bodies.get((said["webhook_id"], each["number"]))
            if body is not None and sha256(salts[each["number"]] + body.encode()).hex() != each["body_commitment"]:
                return "another body was sent"
    return None


def decode(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
