"""Errors as OpenAI's two formats word them."""

from __future__ import annotations

from tests.e2e.model_server.script import Failure
from tests.e2e.model_server.wire import Json

_KINDS = {
    400: "invalid_request_error",
    401: "invalid_request_error",
    404: "not_found_error",
    429: "rate_limit_exceeded",
}
_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}


def openai_error(failure: Failure) -> Json:
    """The body of an error."""
    kind = failure.kind or _KINDS.get(failure.status, "server_error")
    code = failure.kind or _CODES.get(failure.status)
    error = {"message": failure.message, "type": kind, "code": code, "param": None}
    return {"error": {**error, **failure.extra}}
