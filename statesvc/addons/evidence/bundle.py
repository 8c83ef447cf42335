"""The evidence document, self-contained JSON. Pure.

`entries` are leaves of the log's tree, each with its hashed text, its place, and the path to the
signed root. Personal parts and bodies come with the salt of their commitment, so that they prove
themselves; a reader without the scope gets none, and the proofs hold all the same. `seal` signs the
digest of everything else, so that no field can be changed.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from events.entry.canonical_json import canonical_bytes
from events.merkle.checkpoint import Checkpoint, NoteSigner
from events.merkle.proof_forms import Inclusion

FORMAT: Final = "statesvc-evidence/1"
BUNDLE_FILE: Final = "evidence.json"
SEAL: Final = "seal"
SEALED_ORIGIN: Final = "/evidence"
Bundle = Mapping[str, Any]

# Part of a PDF: its at most 18 pages, or everything.
EvidencePart = Literal["document", "annex"]

# The first word of `..._state` fields: the committed content is shown.
OPENED: Final = "opened"
# From a reader without the scope `pii`.
WITHHELD: Final = "withheld"
ERASED: Final = "erased"
NONE: Final = "none"
# The content is about other people's shipments too.
SHARED: Final = "shared"
UNAVAILABLE: Final = "unavailable"


def digest_of(bundle: Bundle) -> bytes:
    """Compute SHA-256 over the canonical JSON (RFC 8785) without the seal. Raises TypeError."""
    return hashlib.sha256(
        # everything but the seal itself: a field that it left out could be changed
        canonical_bytes({name: value for name, value in bundle.items() if name != SEAL})
    ).digest()


def sealed(bundle: Bundle, signers: Sequence[NoteSigner], *, origin: str) -> dict[str, Any]:
    """Return the bundle with its seal: a signed note in the form of a checkpoint, of the digest and
    the number of entries.
    """
    note = Checkpoint(origin + SEALED_ORIGIN, len(bundle["entries"]), digest_of(bundle)).signed(
        signers
    )
    return {**bundle, SEAL: note}


def inclusion_of(entry: Mapping[str, Any]) -> Inclusion:
    path = tuple(base64.b64decode(node, validate=True) for node in entry["proof"])
    return Inclusion(entry["index"], path)


def proof_files(entry: Mapping[str, Any]) -> tuple[str, str]:
    """Return the names of an entry's tlog-proof and COSE receipt in the zip."""
    return f"proofs/{entry['index']}.tlog-proof", f"proofs/{entry['index']}.cose"


def attempts_of(sent: Mapping[str, Any]) -> list[tuple[str, int | None]]:
    """Return the attempts that a body was sent by, as (webhook-id, number).

    No number: all of them (bundles used not to distinguish them).
    """
    return [(sent["webhook_id"], number) for number in sent.get("attempts", [None])]
