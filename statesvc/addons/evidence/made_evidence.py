"""Record of evidence made for a case: who asked, for which case, and which file it was. Nothing of what the merchant stated."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.addons.evidence.merchant_statement import MerchantStatement, statement_commitment
from statesvc.log.actions import SHIPMENT, record_action

MAKE_EVIDENCE: Final = "make_evidence"
"""The verb of the entry."""


async def record_evidence(
    connection: AsyncConnection[Any],
    bundle: Mapping[str, Any],
    content: bytes,
    *,
    actor: str,
    form: str,
) -> None:
    """Append the entry, durably, before the file is handed out. `form`: its media type."""
    stated = bundle["stated"]
    statement = MerchantStatement.model_validate(stated["statement"])
    details = {
        "case": statement.case,
        "reason_code": statement.reason_code,
        "form": form,
        "sha256": hashlib.sha256(content).hexdigest(),
        "statement_commitment": statement_commitment(stated),
        "as_of": None if bundle["as_of"] is None else bundle["as_of"]["at"],
    }
    target = f"{SHIPMENT}{bundle['shipment']['shipment_id']}"
    shown = {name: value for name, value in details.items() if value is not None}
    async with connection.transaction():
        await record_action(
            connection, actor=actor, verb=MAKE_EVIDENCE, target=target, details=shown
        )
