"""Answers to invalid requests: one line in JSON, for every error."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

BODY = 8 * 1024**2  # bytes of a request: the longest batch in JSON with escaped emoji

NO_JSON = "expected JSON, found something else"


class BusyError(Exception):
    """Raised when the queue of waiting requests is full."""


class InvalidRequestError(Exception):
    """An invalid request; the message is sent to the client."""


def add_refusals(app: FastAPI) -> None:
    """Add handlers that answer an invalid request with a one-line message in JSON."""

    @app.middleware("http")
    async def limit(
        request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        length = request.headers.get("content-length")
        if "transfer-encoding" in request.headers:  # its length is unknown
            return refusal(411, "expected only a Content-Length, found Transfer-Encoding")
        if request.method == "POST" and (length is None or not length.isdecimal()):
            return refusal(411, "expected a Content-Length, found none")
        if length is not None and length.isdecimal() and int(length) > BODY:
            return refusal(413, f"expected at most {BODY} bytes, found {length}")
        return await call_next(request)

    @app.exception_handler(RequestValidationError)
    async def wrong(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return refusal(422, NO_JSON)
        place = ".".join(str(part) for part in first["loc"] if part != "body")
        return refusal(422, f"{place or 'request'}: {first['msg']}")

    @app.exception_handler(HTTPException)
    async def nothing(request: Request, error: HTTPException) -> JSONResponse:
        if error.status_code == 400:  # bytes that are no UTF-8, or too many brackets
            return refusal(422, NO_JSON)
        return refusal(error.status_code, f"{request.url.path[:60]}: {error.detail}")

    @app.exception_handler(InvalidRequestError)
    async def bad(request: Request, error: InvalidRequestError) -> JSONResponse:
        return refusal(422, str(error))

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> JSONResponse:  # it is logged, too
        return refusal(500, "internal error: the log of the server has its cause")

    @app.exception_handler(BusyError)
    async def busy(request: Request, error: BusyError) -> JSONResponse:
        return refusal(503, "busy: try again in a moment")


def refusal(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": message}, status)
