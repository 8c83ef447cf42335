"""Key management services, by the URL that names one."""

from pathlib import Path

from statesvc.database.kms.command import CommandKms
from statesvc.database.kms.kms import Credentials, Kms, KmsError
from statesvc.database.kms.vault import VaultKms


def kms_at(url: str, credentials: Credentials) -> Kms:
    """Open `command:/path/to/program` or `vault+https://host:8200/v1/transit/keys/name`. Raises KmsError for what is neither."""
    scheme, _, rest = url.partition(":")
    match scheme:
        case "command" if rest.startswith("/"):
            return CommandKms(Path(rest))
        case "vault+https" | "vault+http":
            return VaultKms(url.removeprefix("vault+"), credentials)
        case _:
            raise KmsError(
                "STATESVC_KMS_URL must be command:/path/to/program or vault+https://host/v1/transit/keys/name"
            )
