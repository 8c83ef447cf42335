"""The sealed parts of attempts: JSON that is compressed before it is encrypted.

A commitment is to its salt and the JSON as it was.
"""

from events.crypto.sealing import SALT_BYTES, SealError, SealingKey
from statesvc.log.json_compression import compress_json, decompress_json


def seal_part(key: SealingKey, salted_part: bytes, context: bytes) -> bytes:
    """Seal a part as it is stored. Its length shows how well it compresses."""
    return key.seal(salted_part[:SALT_BYTES] + compress_json(salted_part[SALT_BYTES:]), context)


def open_part(key: SealingKey, sealed: bytes, context: bytes) -> bytes:
    """Open salt and JSON, whether it was compressed or not. Raises SealError."""
    opened = key.open(sealed, context)
    try:
        return opened[:SALT_BYTES] + decompress_json(opened[SALT_BYTES:])
    except ValueError as error:
        raise SealError(f"the part {error}") from error
