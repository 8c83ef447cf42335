"""A certificate for `localhost` that no authority has signed."""

import subprocess
from pathlib import Path


def make_certificate(folder: Path) -> None:
    """Write `cert.pem` and `key.pem`."""
    subprocess.run(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "1",
            ),
            *(
                "-keyout",
                f"{folder}/key.pem",
                "-out",
                f"{folder}/cert.pem",
                "-subj",
                "/CN=localhost",
            ),
            *("-addext", "subjectAltName=DNS:localhost"),
        ],
        check=True,
        capture_output=True,
    )
