"""A time stamping authority of our own: certificates, and `openssl ts` behind a real HTTP server
that can also misbehave.
"""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from statesvc.log.timestamp import Trust
from tests.world.programs import required

NOTE = "note"
_CONFIGURATION = """
[tsa]
default_tsa = one
[one]
serial = {folder}/serial
crypto_device = builtin
signer_cert = {folder}/signer.pem
signer_key = {folder}/signer.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
accuracy = secs:1
ordering = yes
tsa_name = yes
ess_cert_id_chain = no
ess_cert_id_alg = sha256
"""


@dataclass
class Tsa:
    """`faults` are used up one after the other, each by one request; then it works."""

    folder: Path
    root: bytes
    faults: list[str] = field(default_factory=list)
    asked: list[bytes] = field(default_factory=list)
    url: str = ""

    @property
    def trust(self) -> Trust:
        return Trust.parse(self.root)

    def reply(self, request: bytes) -> bytes:
        """Return what `openssl ts` answers."""
        (self.folder / "request.tsq").write_bytes(request)
        answered = subprocess.run(
            [
                "openssl",
                "ts",
                "-reply",
                "-config",
                self.folder / "tsa.cnf",
                "-queryfile",
                self.folder / "request.tsq",
            ],
            check=True,
            capture_output=True,
        )
        return answered.stdout

    async def handle(self, request: web.Request) -> web.Response:
        asked = await request.read()
        self.asked.append(asked)
        match self.faults.pop(0) if self.faults else "":
            case "garbage":
                body = b"<html>welcome</html>"
            case "huge":
                body = bytes(1_000_000)
            case "500":
                return web.Response(status=500)
            case "redirect":
                return web.Response(status=302, headers={"Location": self.url})
            case "slow":
                await asyncio.sleep(60)
                body = b""
            case "another":
                body = self.reply(self.asked[0])
            case "nonce":
                # the same imprint, asked another time
                body = self.reply(_without_nonce(asked))
            case _:
                body = await asyncio.to_thread(self.reply, asked)
        return web.Response(body=body, content_type="application/timestamp-reply")


def make_tsa(folder: Path, name: str = "Stamps & Sons", *, sends_chain: bool = False) -> Tsa:
    required("openssl", "openssl")
    folder.mkdir()
    root_key, signer_key = (
        ec.generate_private_key(ec.SECP256R1()),
        ec.generate_private_key(ec.SECP256R1()),
    )
    root = _certificate(f"{name} Root", root_key, f"{name} Root", root_key)
    signer = _certificate(name, signer_key, f"{name} Root", root_key)
    (folder / "root.pem").write_bytes(root)
    (folder / "signer.pem").write_bytes(signer)
    (folder / "signer.key").write_bytes(
        signer_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    (folder / "serial").write_text("01\n")
    (folder / "tsa.cnf").write_text(
        _CONFIGURATION.format(folder=folder)
        + (f"certs = {folder}/root.pem\n" if sends_chain else "")
    )
    return Tsa(folder, root)


@asynccontextmanager
async def serving(tsa: Tsa) -> AsyncIterator[Tsa]:
    app = web.Application()
    app.router.add_post("/", tsa.handle)
    async with TestServer(app) as server:
        tsa.url = str(server.make_url("/"))
        yield tsa


def _certificate(
    subject: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
) -> bytes:
    now = datetime.now(UTC)
    is_root = subject == issuer
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=3650))
        .add_extension(x509.BasicConstraints(ca=is_root, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
            critical=False,
        )
    )
    if not is_root:
        builder = builder.add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING]), critical=True
        )
    return builder.sign(issuer_key, hashes.SHA256()).public_bytes(Encoding.PEM)


def _without_nonce(request: bytes) -> bytes:
    """Return the request without its nonce: its last INTEGER before the flag is drawn anew."""
    # SEQUENCE { version, imprint, nonce INTEGER, certReq BOOLEAN }: flip the last byte of the nonce
    changed = bytearray(request)
    changed[-4] ^= 0x01
    return bytes(changed)
