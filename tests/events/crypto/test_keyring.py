import hmac

from events.crypto.keyring import Keyring
from events.crypto.sealing import MasterKeys, SealingKey

ROOT = bytes(range(32))


def keyring(root: bytes = ROOT) -> Keyring:
    return Keyring(master=MasterKeys([bytes(32)]), digest_key=root, inbox=SealingKey.fresh())


def test_a_carriers_digests_are_the_same_in_every_installation_that_shares_the_root() -> None:
    assert keyring().carrier_digest("ups")(b"x") == keyring().carrier_digest("ups")(b"x")


def test_a_carriers_key_is_hkdf_over_the_root() -> None:
    extracted = hmac.digest(bytes(32), ROOT, "sha256")
    key = hmac.digest(extracted, b"statesvc carrier digest\x1fups\x01", "sha256")
    assert keyring().carrier_digest("ups")(b"x") == hmac.digest(key, b"x", "sha256")


def test_equal_words_of_two_carriers_have_different_digests() -> None:
    assert keyring().carrier_digest("ups")(b"x") != keyring().carrier_digest("fedex")(b"x")
    assert keyring().carrier_digest("ups")(b"x") != keyring().digest(b"x")
    assert keyring().carrier_digest("ups")(b"x") != keyring(bytes(32)).carrier_digest("ups")(b"x")
