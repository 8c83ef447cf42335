"""Wording of the HTML page and the PDF besides the facts, once for both."""

from typing import Final


def _paragraphs(text: str) -> tuple[str, ...]:
    return tuple(" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n"))


(BOTH_CLOCKS,) = _paragraphs("""
“Happened” is the carrier's own clock and zone, as the carrier stated it. “Recorded” is when this
service stored it, by the clock of its database, in UTC. A scan may be recorded long after it
happened. The table is in the order in which things happened; statements are numbered in the order
in which they were recorded.
""")

(ONE_ZONE,) = _paragraphs("""
Zone of all times below: {zone}.
""")

(SEALED,) = _paragraphs("""
Each is an entry of an append-only, signed log: anyone can check every line, without the merchant
or this service.
""")

CHECK: Final = (
    "To check: unzip the evidence, then  python3 verify_evidence.py . --key log.pub  (the log’s"
    " key, from a source that you trust)"
)

(TOLD,) = _paragraphs("""
What this service told the systems that had asked to be told of this parcel, such as the
merchant’s shop, and what they answered. Whether a person read it is not known here.
""")

(STATED,) = _paragraphs("""
Stated by the merchant when it asked for this document. The carrier said nothing of it.
""")

HOW_TO_VERIFY: Final = _paragraphs("""
Every line of this document is an entry of an append-only log. The entries are the leaves of a
Merkle tree (RFC 9162); the tree's head is signed and published again and again, so that no entry
can be changed, removed or inserted later without the signed heads disagreeing.

The same evidence as a JSON file carries, for each entry, the exact text that was hashed, its
place in the log, and the path of hashes from it to the signed head printed below.

To check it, unzip the evidence and run the verifier that is in it, on any machine, without a
network: python3 verify_evidence.py evidence.zip --key 'PUBLIC KEY'. It is one file, and needs
Python 3.9 or later and nothing else. Take the public key from a source that you trust, not from
this document.

Anyone can do the same without our program: SHA-256 of a zero byte and the entry's text gives the
leaf; RFC 9162, section 2.1.3.2, leads from the leaf along the path to the root; the head is a
signed note (C2SP signed-note, Ed25519) with the log's name, its size and that root.

Personal parts and message bodies are given with a random salt: SHA-256 of salt and content is the
commitment that the entry holds. Where personal data was erased, the commitment stays and
everything else still verifies. What a subscriber was sent is bound the same way by the entry of
each attempt, whose personal part holds the salt.
""")

README: Final = """Evidence of a shipment.

evidence.pdf          to be read; at most 18 pages
evidence-annex.pdf    only where the document is too short for all of it
evidence.json         the same with the proofs
checkpoint.txt        the signed head of the log that the proofs lead to
proofs/               of each entry, for other tools: C2SP tlog-proof, COSE receipt (RFC 9942)
verify_evidence.py    checks it: one file of Python 3.9 or later, offline

    python3 verify_evidence.py . --key KEY

KEY is the log's public key, or a file of such keys. Take it from a source that you trust, not from these files.
"""

# Meanings of a shipment's flags in the list of statements.
FLAGS: Final = {
    "contradicted": "contradicts the others",
    "reopened": "scanned again after its end",
    "redelivered": "a second delivery",
    "backward": "out of order",
    "delivered_while_returning": "delivered on its way back",
}
