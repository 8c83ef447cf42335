"""Verifies evidence of a shipment, offline: this one file and Python 3.9 or later, nothing else.

    python3 verify_evidence.py evidence.zip --key 'log.example+5f1d5c75+AdYz...'

The argument is the zip file, the folder that it was unpacked to, or the JSON file alone. --key is
the log's public key, or a file of such keys; take it from a source that you trust, not from the
evidence. Without it the evidence is only checked against itself.

Ends with 0: it holds. 1: it does not. 2: wrong use. 3: consistent with itself, but no
trusted key was given.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

FORMAT = "statesvc-evidence/1"
FILE = "evidence.json"
HOLDS, FLAWED, WRONG_USE, UNTRUSTED = 0, 1, 2, 3
MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)

# --- Ed25519 (RFC 8032), verification only ---

PRIME = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
CURVE = -121665 * pow(121666, PRIME - 2, PRIME) % PRIME
ROOT_OF_MINUS_ONE = pow(2, (PRIME - 1) // 4, PRIME)
Point = tuple[int, int, int, int]  # X, Y, Z, T: extended coordinates
Keys = list[tuple[str, bytes]]
Pair = tuple[dict[str, Any], dict[str, Any]]  # an entry, and what it says


def point_from(encoded: bytes) -> Point:
    """Decode a point. Raises ValueError."""
    number = int.from_bytes(encoded, "little")
    sign, y = number >> 255, number & (1 << 255) - 1
    if len(encoded) != 32 or y >= PRIME:
        raise ValueError("not a point")
    square = (y * y - 1) * pow(CURVE * y * y + 1, PRIME - 2, PRIME) % PRIME
    x = pow(square, (PRIME + 3) // 8, PRIME)
    if (x * x - square) % PRIME:
        x = x * ROOT_OF_MINUS_ONE % PRIME
    if (x * x - square) % PRIME or (x == 0 and sign):
        raise ValueError("not a point")
    if x & 1 != sign:
        x = PRIME - x
    return (x, y, 1, x * y % PRIME)


def added(p: Point, q: Point) -> Point:
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % PRIME, (p[1] + p[0]) * (q[1] + q[0]) % PRIME
    c, d = 2 * p[3] * q[3] * CURVE % PRIME, 2 * p[2] * q[2] % PRIME
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % PRIME, g * h % PRIME, f * g % PRIME, e * h % PRIME)


def multiplied(number: int, point: Point) -> Point:
    """Multiply a point."""
    found: Point = (0, 1, 1, 0)
    while number:
        if number & 1:
            found = added(found, point)
        point, number = added(point, point), number >> 1
    return found


BASE = point_from((4 * pow(5, PRIME - 2, PRIME) % PRIME).to_bytes(32, "little"))


@lru_cache(maxsize=64)
def is_signed(public_key: bytes, signature: bytes, text: bytes) -> bool:
    """Return whether the text was signed by the holder of the key."""
    try:
        key, shown = point_from(public_key), point_from(signature[:32])
    except ValueError:
        return False
    scalar = int.from_bytes(signature[32:], "little")
    if len(signature) != 64 or scalar >= ORDER:
        return False
    challenge = (
        int.from_bytes(hashlib.sha512(signature[:32] + public_key + text).digest(), "little")
        % ORDER
    )
    left, right = multiplied(scalar, BASE), added(shown, multiplied(challenge, key))
    return not (
        (left[0] * right[2] - right[0] * left[2]) % PRIME
        or (left[1] * right[2] - right[1] * left[2]) % PRIME
    )


# --- Signed notes (C2SP signed-note, tlog-checkpoint) ---


class Head:
    """A signed tree head. Raises ValueError unless one of the keys has signed it."""

    def __init__(self, note: str, keys: Keys) -> None:
        text, _, signatures = note.rpartition("\n\n")
        text += "\n"
        self.origin, size, root, *more = text.split("\n")
        if more != [""] or not re.fullmatch(r"0|[1-9][0-9]{0,18}", size):
            raise ValueError("not a checkpoint")
        self.size, self.root = int(size), decoded(root)
        signed = False
        for line in signatures.rstrip("\n").split("\n"):
            dash, name, encoded = line.split(" ")
            identity, signature = decoded(encoded)[:4], decoded(encoded)[4:]
            for known, key in keys:
                # a line of another kind, or by another key, is passed over, as the format asks
                if (dash, name, identity) == ("\u2014", known, key_id(known, b"\x01", key)):
                    if not is_signed(key, signature, text.encode()):
                        raise ValueError("a signature does not fit")
                    signed = True
        if not signed:
            raise ValueError("none of the keys has signed it")

    @property
    def log(self) -> str:
        """The name of the log, whatever its epoch."""
        return re.sub(r"/epoch-[0-9]+\Z", "", self.origin)


def read_keys(lines: list[str]) -> Keys:
    """Name and key of each. Raises ValueError, and UnreadableError without an Ed25519 key."""
    keys = []
    for line in lines:
        name, _, rest = line.strip().partition("+")
        identity, _, encoded = rest.partition("+")
        material = decoded(encoded)
        # an ML-DSA-44 key of the log: `statesvc verify --bundle` takes it, this file has no ML-DSA
        if material[:1] == b"\x06":
            continue
        if (
            len(material) != 33
            or material[:1] != b"\x01"
            or key_id(name, b"\x01", material[1:]).hex() != identity
        ):
            raise ValueError("not a public key")
        keys.append((name, material[1:]))
    if not keys:
        raise UnreadableError("This program checks the log's Ed25519 key: give that --key, too.")
    return keys


def key_id(name: str, kind: bytes, key: bytes) -> bytes:
    """Return the key id of a signature."""
    return sha256(name.encode() + b"\n" + kind + key)[:4]


# --- Merkle proofs (RFC 9162) ---


def node(left: bytes, right: bytes) -> bytes:
    """Return the hash of two subtrees."""
    return sha256(b"\x01" + left + right)


def root_of(leaf: bytes, index: int, size: int, path: list[bytes]) -> bytes | None:
    """Return the root that a path leads to (2.1.3.2); None: it does not fit the tree."""
    if not 0 <= index < size:
        return None
    last = size - 1
    for sibling in path:
        if last == 0:
            return None
        if index & 1 or index == last:
            leaf = node(sibling, leaf)
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            leaf = node(leaf, sibling)
        index, last = index >> 1, last >> 1
    return leaf if last == 0 else None


def is_beginning(first: Head, second: Head, path: list[bytes]) -> bool:
    """Return whether the second log begins with the first (2.1.4.2)."""
    if first.size == second.size:
        return not path and first.root == second.root
    if not 0 < first.size < second.size or not path:
        return False
    if not first.size & (first.size - 1):
        path = [first.root, *path]
    here, last = first.size - 1, second.size - 1
    while here & 1:
        here, last = here >> 1, last >> 1
    of_first = of_second = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if here & 1 or here == last:
            of_first, of_second = node(sibling, of_first), node(sibling, of_second)
            while not here & 1 and here:
                here, last = here >> 1, last >> 1
        else:
            of_second = node(of_second, sibling)
        here, last = here >> 1, last >> 1
    return last == 0 and (of_first, of_second) == (first.root, second.root)


# --- The evidence ---


def all_flaws(bundle: dict[str, Any], keys: Keys, files: dict[str, bytes]) -> list[str]:
    """Return what does not hold; empty: all of it does.

    `files`: those that came with it, by name.
    """
    try:
        return list(flaws(bundle, keys, files))
    except MALFORMED as error:
        return [f"it is malformed, or not signed by a known key ({error})"]


def flaws(bundle: dict[str, Any], keys: Keys, files: dict[str, bytes]) -> Iterator[str]:
    """Yield the faults."""
    head, seal = Head(bundle["log"]["checkpoint"], keys), Head(bundle["seal"], keys)
    rest = {name: value for name, value in bundle.items() if name != "seal"}
    canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    if (seal.origin, seal.size, seal.root) != (
        f"{head.log}/evidence",
        len(bundle["entries"]),
        sha256(canonical),
    ):
        yield "the document is not the one that was sealed: something in it was changed"
    for name, digest in bundle.get("documents", {}).items():
        if name in files and sha256(files[name]).hex() != digest:
            yield f"{name} is not the one that was sealed with the document"
    pairs = [(entry, json.loads(entry["canonical"])) for entry in bundle["entries"]]
    for entry, said in pairs:
        yield from entry_flaws(entry, said, head)
    indexes = [entry["index"] for entry in bundle["entries"]]
    if indexes != sorted(set(indexes)):
        yield "an entry is repeated, or out of order"
    yield from chain_flaws(bundle, pairs)
    yield from as_of_flaws(bundle, head, keys)
    yield from body_flaws(bundle, pairs)


def entry_flaws(entry: dict[str, Any], said: dict[str, Any], head: Head) -> Iterator[str]:
    """Check its hash, its position in the log, its personal part."""
    leaf = sha256(b"\x00" + entry["canonical"].encode())
    if leaf.hex() != entry["leaf_hash"]:
        yield f"entry {entry['index']}: its hash is another"
    if (
        root_of(leaf, entry["index"], head.size, [decoded(each) for each in entry["proof"]])
        != head.root
    ):
        yield f"entry {entry['index']}: it is not at this place of the signed log"
    if said["entry"] != entry["kind"]:
        yield f"entry {entry['index']}: it is of another kind"
    if entry["part"] is not None and sha256(decoded(entry["part"])).hex() != said.get(
        "part_commitment"
    ):
        yield f"entry {entry['index']}: its personal part is not the one that it is committed to"


def chain_flaws(bundle: dict[str, Any], pairs: list[Pair]) -> Iterator[str]:
    """Check that no event of the shipment is missing, and that what the document says
    of it is what they say.
    """
    shipment, previous, version = bundle["shipment"], "00" * 32, 0
    for entry, said in pairs:
        if entry["kind"] == "event":
            version += 1
            if (said["version"], said["previous_hash"], said["shipment_id"]) != (
                version,
                previous,
                shipment["shipment_id"],
            ):
                yield (
                    f"entry {entry['index']}: event {version} of the shipment is missing, or was"
                    " changed"
                )
            if said["carrier_id"] != shipment["carrier_id"]:
                yield f"entry {entry['index']}: an event of another carrier"
            previous = entry["leaf_hash"]
    if version == 0 or version != shipment["version"]:
        yield "the last event of the shipment is missing"
    moves = [said["to"] for _, said in pairs if said["entry"] == "transition"]
    if moves and moves[-1] != shipment["status"]:
        yield f"the last conclusion in the log is {moves[-1]!r}, not {shipment['status']!r}"
    services = {said.get("service") for _, said in pairs if said["entry"] == "event"}
    if shipment["service"] not in services | {None}:
        yield f"no event states the service {shipment['service']!r}"


def as_of_flaws(bundle: dict[str, Any], head: Head, keys: Keys) -> Iterator[str]:
    """Check that the log had been signed with these entries then, and only grew since."""
    stated = bundle.get("as_of")
    if stated is None:
        return
    then = Head(stated["checkpoint"], keys)
    if then.size != stated["log_index"] + 1 or any(
        entry["index"] >= then.size for entry in bundle["entries"]
    ):
        yield "it has entries that were sealed later than it says"
    if not is_beginning(then, head, [decoded(each) for each in stated["consistency"]]):
        yield "the log that was signed then is not the beginning of the one that was signed last"


def body_flaws(bundle: dict[str, Any], pairs: list[Pair]) -> Iterator[str]:
    """Check that the carrier's messages and our notifications, word for word, are those that the
    entries are committed to.
    """
    committed = {
        said["message_id"]: said["body_commitment"]
        for _, said in pairs
        if "message_id" in said and "body_commitment" in said
    }
    for message in bundle["messages"]:
        if message["body"] is not None and sha256(decoded(message["body"])).hex() != committed.get(
            message["message_id"]
        ):
            yield (
                f"message {message['message_id']}: its body is not the one that its events are"
                " committed to"
            )
    bodies = {
        (row["webhook_id"], number): row["body"]
        for row in bundle["sent"]
        for number in row.get("attempts", ())
    }
    for entry, said in pairs:
        if said["entry"] != "attempt" or entry["part"] is None:
            continue
        salts = {
            part["number"]: bytes.fromhex(part["body_salt"])
            for part in json.loads(decoded(entry["part"])[32:])["tries"]
        }
        for each in said["tries"]:
            body = bodies.get((said["webhook_id"], each["number"]))
            if (
                body is not None
                and sha256(salts[each["number"]] + body.encode()).hex() != each["body_commitment"]
            ):
                yield f"entry {entry['index']}: another body was sent"


def report(bundle: dict[str, Any], files: dict[str, bytes]) -> Iterator[str]:
    """Yield what was checked, and what cannot be."""
    kinds = Counter(entry["kind"] for entry in bundle["entries"])
    yield (
        f"Shipment {bundle['shipment']['carrier_id']} {bundle['shipment']['tracking_number']},"
        f" {bundle['shipment']['status']}."
    )
    yield "Checked:"
    counted = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
    yield f"- {len(bundle['entries'])} entries stand in the signed log: {counted}"
    yield "- no event of the shipment is missing between its first and its last"
    yield (
        f"- {sum(entry['part'] is not None for entry in bundle['entries'])} personal parts are"
        " those that were recorded"
    )
    yield (
        f"- {sum(message['body'] is not None for message in bundle['messages'])} messages of the"
        " carrier are as they came"
    )
    if bundle.get("as_of"):
        yield f"- nothing in it was sealed after {bundle['as_of']['at']}"
    for name in bundle.get("documents", {}):
        yield (
            f"- {name}"
            f" {'was sealed with it' if name in files else 'is not here, so it was NOT checked'}"
        )
    yield "Sealed by the service with the rest, and not proved by the log:"
    yield ("- what the merchant states, and the pages of the PDF: compare them with the entries")
    yield "Cannot be checked here:"
    yield "- that what the carrier said is true"
    yield (
        "- that everyone was shown the same log: compare its checkpoint with one that another party"
        " holds"
    )
    if bundle["log"].get("stamp"):
        yield (
            "- the time stamp of an outside authority: `openssl ts -verify`, or `statesvc verify"
            " --bundle`, does that"
        )


# --- The command ---


def main(arguments: list[str]) -> int:
    """Verify, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("evidence", type=Path, help="the zip file, its folder, or the JSON file")
    parser.add_argument(
        "--key", action="append", default=[], help="the log's public key, or a file of such keys"
    )
    options = parser.parse_args(arguments)
    try:
        files = read_files(options.evidence)
        bundle = read_bundle(options.evidence, files)
        lines = [line for key in options.key for line in key_lines(key)]
        keys = read_keys(lines or bundle["log"]["keys"])
    except UnreadableError as error:
        say(str(error))
        return WRONG_USE
    except MALFORMED:
        say(
            "--key is no public key of a log: it looks like NAME+HASH+KEY, or is a file of such"
            " lines."
        )
        return WRONG_USE
    found = all_flaws(bundle, keys, files)
    if found:
        for flaw in found:
            say(f"- {flaw}")
        say("THIS EVIDENCE DOES NOT HOLD.")
        return FLAWED
    for line in report(bundle, files):
        say(line)
    if len(keys) < len(lines):
        say("Not checked here: the ML-DSA-44 key. `statesvc verify --bundle` checks it too.")
    if not lines:
        say(
            "CONSISTENT WITH ITSELF. Whether it is the log's own shows only with its public key"
            " from a source that you trust: --key KEY."
        )
        return UNTRUSTED
    say("THIS EVIDENCE HOLDS.")
    return HOLDS


class UnreadableError(Exception):
    """Nothing can be verified.

    Its text repeats nothing of the file: that may be the PDF, with names in it.
    """


def read_files(path: Path) -> dict[str, bytes]:
    """Read the files by name. Raises UnreadableError."""
    try:
        if path.is_dir():
            return {each.name: each.read_bytes() for each in path.iterdir() if each.is_file()}
        if not zipfile.is_zipfile(path):
            return {FILE: path.read_bytes()}
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, zlib.error):
        raise UnreadableError(f"{path} is a zip that is damaged: fetch it again.") from None


def read_bundle(path: Path, files: dict[str, bytes]) -> dict[str, Any]:
    """Return the evidence. Raises UnreadableError."""
    try:
        bundle = json.loads(files[FILE])
    except MALFORMED:
        bundle = None
    if not isinstance(bundle, dict) or bundle.get("format") != FORMAT:
        raise UnreadableError(
            f"{path} is not evidence of the format {FORMAT}: give the zip, its folder, or its"
            f" {FILE}."
        )
    return bundle


def key_lines(key: str) -> list[str]:
    """Return the key itself, or those in the file of this name."""
    path = Path(key)
    return (
        path.read_text("utf-8", "replace").split() if len(key) < 256 and path.is_file() else [key]
    )


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def decoded(text: str) -> bytes:
    """Decode base64. Raises ValueError."""
    return base64.b64decode(text, validate=True)


def say(line: str) -> None:
    """Print one line of the answer."""
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
