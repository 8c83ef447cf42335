"""Messages in words."""

import json

from statesvc.http.views import Answer


def body(message: Answer) -> str | None:
    """Return the body, JSON indented; without personal data its structure."""
    text = message.get("body_text")
    if text is not None:
        try:
            return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
        except ValueError:
            return str(text)
    if message.get("body_base64") is not None:
        return f"Base64, for it is not UTF-8: {message['body_base64']}"
    structure = message.get("body_structure")
    return structure["text"] if structure else None


def about_body(message: Answer) -> str:
    if message.get("body_base64") is not None:
        return "This reading is an entry of the log."
    structure = message.get("body_structure")
    if structure is None:
        return f"Body: {message['body_place']}."
    if structure["is_cut_off"]:
        return (
            "Structure alone: every value is masked. It is cut off at character"
            f" {structure['characters']:,}: the carrier, or a proxy between, likely cuts bodies."
        )
    return "Structure alone: every value is masked."
