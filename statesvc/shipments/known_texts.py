"""Texts in place of codes, for readers who may not open sealed parts: a text that the carrier's own
tables know is not personal.

In clear the log has a keyed digest of such a text. A text that the tables do not know stays
one. Not in what subscribers are sent: that is made again, byte for byte, whatever the
tables have learned since.
"""

from collections.abc import Mapping

from events.carriers import CARRIERS
from events.clear_part import STAND_IN, known_texts
from events.crypto.keyring import Keyring


class KnownTexts:
    """Texts of every carrier that are known, by their stand-ins."""

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring
        self._texts: dict[str, Mapping[str, str]] = {}

    def spelled_out(self, carrier_id: str, code: str | None) -> str | None:
        # most codes are in clear: the texts of a carrier are not digested for them
        if code is None or "text-" not in code or carrier_id not in CARRIERS:
            return code
        # once per carrier: each text of its tables takes a keyed digest
        if carrier_id not in self._texts:
            self._texts[carrier_id] = known_texts(
                CARRIERS[carrier_id].texts, carrier_id, self._keyring.carrier_digest(carrier_id)
            )
        known = self._texts[carrier_id]
        # within the code: it may be joined of type, code and reason
        return STAND_IN.sub(lambda found: known.get(found[0], found[0]), code)
