"""Options of a receiver for each request: its own headers, and a second signature."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from statesvc.delivery import own_headers
from statesvc.http.closed_model import ClosedModel
from statesvc.shipments.models import text_of

HeaderName = Annotated[
    str,
    Field(max_length=own_headers.NAME_CHARS_MAX, pattern=own_headers.NAME_PATTERN),
    AfterValidator(own_headers.checked_name),
]
HeaderValue = Annotated[
    str,
    Field(min_length=1, max_length=own_headers.VALUE_CHARS_MAX, pattern=own_headers.VALUE_PATTERN),
]


def _fitting(headers: dict[str, str]) -> dict[str, str]:
    own_headers.check_headers(headers)
    return headers


Headers = Annotated[
    dict[HeaderName, HeaderValue],
    Field(
        max_length=own_headers.HEADERS_MAX,
        description=(
            "Sent along with each request to an http(s) URL; a broker gets none. They are stored"
            " sealed, shown by name only, and go nowhere but to the URL that they came with: a"
            " change of `url` forgets them. All are replaced at once."
        ),
    ),
    AfterValidator(_fitting),
]


class SecondSignature(ClosedModel):
    """Second signature: an HMAC of the raw body.

    Its key is the text of the secret, `whsec_` included.
    """

    algorithm: Literal["hmac-sha256"]
    header: Annotated[HeaderName, Field(description="`X-Hub-Signature-256`, for one.")]
    encoding: Literal["hex", "base64"]
    prefix: Annotated[
        str,
        Field(
            max_length=40,
            pattern=r"^[!-z|~ ]*(\{timestamp\}[!-z|~ ]*)?$",
            description=(
                "Stands before it: `sha256=`. With `{timestamp}` in it, `t={timestamp},v1=`, it"
                " states the time, and `timestamp.body` is signed instead of the body."
            ),
        ),
    ] = ""


SignatureAsked = Annotated[
    SecondSignature | None,
    Field(
        description=(
            "A second signature, beside that of Standard Webhooks, for a receiver that checks an"
            " older one and shall not change. http(s) alone, and `key_type` hmac."
        )
    ),
]


class OlderSignatureShown(TypedDict):
    """A second signature, as it was set."""

    algorithm: Annotated[str, text_of(Literal["hmac-sha256"])]
    header: str
    encoding: Annotated[str, text_of(Literal["hex", "base64"])]
    prefix: str
