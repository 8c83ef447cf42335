"""Forms in which documents are handed out."""

from typing import Final

FORMS: Final = {
    ".json": "application/json",
    ".html": "text/html",
    ".pdf": "application/pdf",
    ".zip": "application/zip",
}
"""The end of a file's name, and its media type."""
