"""Forward pushes to statesvc and receive its notifications, with FastAPI."""

import os

import httpx
from fastapi import FastAPI, HTTPException, Request, Response
from statesvc_client import InvalidSignatureError, verify

app = FastAPI()
statesvc = httpx.AsyncClient(base_url=os.environ["STATESVC_URL"], timeout=10)


@app.post("/webhooks/{carrier_id}")
async def push(carrier_id: str, request: Request) -> Response:
    headers = [
        (name, value)
        for name, value in request.headers.raw
        if name not in {b"host", b"content-length", b"connection"}
    ]
    answer = await statesvc.post(
        f"/v1/webhooks/{carrier_id}",
        params=request.url.query,
        headers=headers,
        content=await request.body(),
    )
    return Response(
        answer.content, answer.status_code, media_type=answer.headers.get("Content-Type")
    )


@app.post("/notifications", status_code=204)
async def notification(request: Request) -> None:
    try:
        event = verify(
            os.environ["NOTIFICATION_SECRETS"].split(), request.headers, await request.body()
        )
    except InvalidSignatureError:
        raise HTTPException(401) from None
    print(request.headers["webhook-id"], event["type"])  # a task of yours, once for each id
