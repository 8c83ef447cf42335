"""Forward pushes to statesvc and receive its notifications, with Flask."""

import os

import httpx
from flask import Flask, Response, abort, request
from statesvc_client import InvalidSignatureError, verify

app = Flask(__name__)
statesvc = httpx.Client(base_url=os.environ["STATESVC_URL"], timeout=10)


@app.post("/webhooks/<carrier_id>")
def push(carrier_id: str) -> Response:
    headers = {
        name: value
        for name, value in request.headers
        if name not in {"Host", "Content-Length", "Connection"}
    }
    answer = statesvc.post(
        f"/v1/webhooks/{carrier_id}",
        params=request.query_string,
        headers=headers,
        content=request.get_data(),
    )
    return Response(
        answer.content, answer.status_code, content_type=answer.headers.get("Content-Type")
    )


@app.post("/notifications")
def notification() -> tuple[str, int]:
    try:
        event = verify(
            os.environ["NOTIFICATION_SECRETS"].split(), request.headers, request.get_data()
        )
    except InvalidSignatureError:
        abort(401)
    print(request.headers["webhook-id"], event["type"])  # a task of yours, once for each id
    return "", 204
