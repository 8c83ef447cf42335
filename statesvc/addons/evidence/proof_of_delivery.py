"""Proof of delivery that a carrier pushed: photographs, signatures, links.

Read from bodies that the log commits to.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

_IMAGE_BYTES_MAX: Final = 1024 * 1024
_IMAGES_MAX: Final = 2
_FORMATS: Final = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpg", b"GIF8": "gif"}
_ANY: Final = "*"

# Paths into carriers' JSON that hold it (`*`: each member of a list), with their content.
PUSHED: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    "amazon": [
        ("summary/proofOfDelivery/deliveryImageURL", "photograph"),
        ("payload/summary/proofOfDelivery/deliveryImageURL", "photograph"),
    ],
    "dhl_unified": [
        ("shipments/*/details/proofOfDelivery/documentUrl", "document"),
        ("shipments/*/details/proofOfDelivery/signatureUrl", "signature"),
    ],
    "nationex": [("Photos/*/Data", "photograph")],
    "ups": [
        (
            "trackResponse/shipment/*/package/*/deliveryInformation/deliveryPhoto/photo",
            "photograph",
        ),
        ("trackResponse/shipment/*/package/*/deliveryInformation/signature/image", "signature"),
    ],
}


@dataclass(frozen=True, slots=True)
class DeliveryProof:
    what: str
    message_id: str
    link: str = ""
    image: bytes = b""
    image_format: str | None = None

    @property
    def source(self) -> str:
        """The picture as a `data:` URL."""
        media_type = {"jpg": "jpeg"}.get(self.image_format or "", self.image_format)
        return f"data:image/{media_type};base64,{base64.b64encode(self.image).decode()}"


def read_delivery_proofs(bundle: Mapping[str, Any]) -> list[DeliveryProof]:
    """Read the proofs of the messages that this reader may see, each once; at most two pictures."""
    paths = PUSHED.get(bundle["shipment"]["carrier_id"], ())
    found: dict[str, DeliveryProof] = {}
    for message in bundle["messages"] if paths else ():
        try:
            document = orjson.loads(base64.b64decode(message["body"] or ""))
        except orjson.JSONDecodeError:
            continue
        for path, what in paths:
            for value in _values(document, path.split("/")):
                proof = _proof(value, what, message["message_id"])
                if proof is not None:
                    # every push repeats it
                    found.setdefault(value, proof)
    pictures = [proof for proof in found.values() if proof.image_format is not None]
    return [proof for proof in found.values() if proof.image_format is None] + pictures[
        :_IMAGES_MAX
    ]


def _values(document: Any, path: Sequence[str]) -> Iterator[str]:  # noqa: ANN401 - any JSON
    if not path:
        if isinstance(document, str):
            yield document
    elif path[0] == _ANY:
        for member in document if isinstance(document, list) else ():
            yield from _values(member, path[1:])
    elif isinstance(document, dict):
        yield from _values(document.get(path[0]), path[1:])


def _proof(value: str, what: str, message_id: str) -> DeliveryProof | None:
    """Return the proof in the value, unless it is a placeholder."""
    if value.startswith("https://"):
        return DeliveryProof(what, message_id, link=value)
    # before it is decoded; base64 takes four characters for three bytes
    if len(value) > _IMAGE_BYTES_MAX * 4 / 3:
        return None
    try:
        # some carriers fold it into lines
        image = base64.b64decode("".join(value.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
    # by its first bytes: the carriers' own labels of formats are not to be relied on
    for begins, image_format in _FORMATS.items():
        if image.startswith(begins):
            return DeliveryProof(what, message_id, image=image, image_format=image_format)
    return None
