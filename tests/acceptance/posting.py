"""Webhooks of any carrier, whatever answer it takes for a yes."""

from tests.acceptance.processes import Service


async def post_webhook(service: Service, carrier_id: str, body: bytes) -> tuple[int, str]:
    """Return the status, and the message's id where it was taken."""
    async with service.session.post(
        f"{service.api.url}/v1/webhooks/{carrier_id}", data=body
    ) as answer:
        await answer.read()
        return answer.status, answer.headers.get("Statesvc-Message-Id", "")
