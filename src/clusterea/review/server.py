"""The page of `clusterea review`, on this machine only."""

from __future__ import annotations

import errno
import json
import os
import secrets
import socket
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from clusterea.errors import InputError
from clusterea.report.payload import embed_json
from clusterea.report.report import palette
from clusterea.review.session import Said, Session

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOST = "127.0.0.1"
ADDRESS = ".review.json"  # in the run's folder: the last port and token
LONGEST_BODY = 64 * 1024  # bytes
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_NOTHING = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
_FIELDS = {"source", "target", "verdict", "other", "comment", "random"}

Value = TypeVar("Value")


def application(session: Session, token: str, *, run: str = "RUN") -> Starlette:
    """The page and its interface. Requests without the token are refused.

    Args:
        session: Asks and keeps the answers. It is used by one request at a time.
        token: Of the page's address; the interface wants it as `Authorization: Bearer TOKEN`.
        run: The run's folder, for the commands that the page shows.
    """
    lock = Lock()

    async def locked(call: Callable[[], Value]) -> Value:
        def alone() -> Value:
            with lock:
                return call()

        return await run_in_threadpool(alone)

    async def page(request: Request) -> Response:
        nonce = secrets.token_urlsafe(16)
        policy = (
            f"{_NOTHING}; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
            "connect-src 'self'; img-src data:"
        )
        html = _page(nonce, {"run": run, "blind": session.blind})
        return HTMLResponse(html, headers={"Content-Security-Policy": policy})

    async def question(request: Request) -> Response:
        after = None
        if "after_source" in request.query_params:
            after = _pair(request.query_params, "after_source", "after_target")
        return await told(lambda: {"question": session.next(after)})

    async def candidate(request: Request) -> Response:
        pair = _pair(request.query_params, "source", "target")
        return JSONResponse({"question": await locked(lambda: session.look(*pair))})

    async def answer(request: Request) -> Response:
        body = _checked(await _body(request))
        pair = body["source"], body["target"]
        other = body.get("other")

        def given() -> dict[str, Any]:
            last = session.answer(
                pair,
                body["verdict"],
                other,
                body.get("comment", ""),
                is_random=body.get("random", False),
            )
            return {"last": last, "question": session.next()}

        return await told(given)

    async def undo(request: Request) -> Response:
        await _body(request)

        def undone() -> dict[str, Any]:
            before = session.undo()
            if before is None:
                raise InputError("there is no answer of this session to take back.")
            return {"question": before}

        return await told(undone)

    async def progress(request: Request) -> Response:
        return await told(dict)

    async def told(call: Callable[[], dict[str, Any]]) -> Response:
        """The result together with the progress after it."""
        return JSONResponse(await locked(lambda: {**call(), "progress": session.progress()}))

    return Starlette(
        routes=[
            Route("/", page),
            Route("/api/question", question),
            Route("/api/candidate", candidate),
            Route("/api/progress", progress),
            Route("/api/answer", answer, methods=["POST"]),
            Route("/api/undo", undo, methods=["POST"]),
        ],
        middleware=[
            Middleware(_SafeHeaders),
            # A page elsewhere could point its own name to this machine.
            Middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"]),
            Middleware(_WithToken, token=token),
        ],
        exception_handlers={InputError: _refused, ClientDisconnect: _gone, Exception: _failed},
    )


def bound(port: int | None, before: int | None = None) -> socket.socket:
    """A socket that listens on this machine.

    Args:
        port: The port; None for a free one.
        before: The port to prefer, if it is free.
    """
    for number in (port,) if port is not None else (before or 0, 0):
        # Only if the protocol is named, asyncio sends small packets at once, and not 40 ms later.
        place = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            place.bind((HOST, number))
            place.listen()
            return place
        except OSError as error:
            place.close()
            if port is None:
                continue
            if error.errno == errno.EADDRINUSE:
                raise InputError(
                    f"port {port} is in use. Give --port another number, or leave it out."
                ) from error
            raise InputError(f"port {port} can't be used: {error.strerror}.") from error
    raise InputError("no port is free.")


def remembered(folder: Path) -> tuple[int | None, str]:
    """The last port of a run's page, and its token; a new token if there was none.

    With the same address, a page that is still open goes on after a restart.
    """
    try:
        values = json.loads((folder / ADDRESS).read_text())
        port, token = int(values["port"]), str(values["token"])
        if len(token) >= 32 and token.isascii() and 0 < port < 65536:
            return port, token
    except (OSError, ValueError, TypeError, KeyError):
        pass
    return None, secrets.token_urlsafe(32)


def remember(folder: Path, port: int, token: str) -> None:
    """Keeps the address for `remembered`; only this user can read it."""
    (folder / ADDRESS).unlink(missing_ok=True)
    number = os.open(folder / ADDRESS, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(number, "w") as file:
        json.dump({"port": port, "token": token}, file)


def serve(app: Starlette, place: socket.socket) -> None:
    """Answers requests until a signal ends it."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )
    uvicorn.Server(config).run(sockets=[place])


class _SafeHeaders:
    """Adds the headers that keep a page and its contents to itself."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("Content-Security-Policy", _NOTHING)
            await send(message)

        await self._app(scope, receive, guarded)


class _WithToken:
    """Refuses requests without the token: in the page's address, else in a header."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._is_known(scope):
            error = "open the address that `clusterea review` printed; this one has no valid token."
            await JSONResponse({"error": error}, 403)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_known(self, scope: Scope) -> bool:
        if scope["path"] == "/":
            given = QueryParams(scope["query_string"]).get("token", "")
        else:
            kind, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
            if kind.lower() != "bearer":
                return False
        return secrets.compare_digest(given.encode(), self._token)


def _page(nonce: str, settings: dict[str, Any]) -> str:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined)
    return environment.from_string(_asset("page.html")).render(
        nonce=nonce,
        style=palette() + _asset("review.css"),
        script=_asset("review.js"),
        settings=embed_json(settings),
    )


def _asset(name: str) -> str:
    return files("clusterea.review").joinpath(name).read_text(encoding="utf-8")


async def _body(request: Request) -> Any:
    """The JSON of a request."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise InputError("the body must be of type application/json.")
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > LONGEST_BODY:
            raise InputError(f"the body must have at most {LONGEST_BODY:,} bytes.")
        parts.append(part)
    try:
        return json.loads(b"".join(parts))
    except (ValueError, RecursionError) as error:
        raise InputError("the body must be JSON.") from error


def _checked(body: Any) -> dict[str, Any]:
    """The body of an answer; raises unless all fields have their types."""
    if not isinstance(body, dict):
        raise InputError("the body must be a JSON object.")
    if unknown := sorted(body.keys() - _FIELDS):
        raise InputError(f"unknown field {unknown[0]!r}; known are {', '.join(sorted(_FIELDS))}.")
    for name in ("source", "target", "other"):
        value = body.get(name)
        if value is None and name == "other":
            continue
        if not isinstance(value, int) or isinstance(value, bool):
            raise InputError(f"{name} must be the number of an entity. Got {value!r} instead.")
    if body.get("verdict") not in get_args(Said):
        raise InputError(
            f"verdict must be one of {', '.join(get_args(Said))}. "
            f"Got {body.get('verdict')!r} instead."
        )
    if not isinstance(body.get("comment", ""), str):
        raise InputError("comment must be text.")
    if not isinstance(body.get("random", False), bool):
        raise InputError("random must be true or false.")
    return cast("dict[str, Any]", body)


def _pair(query: QueryParams, source: str, target: str) -> tuple[int, int]:
    values = [query.get(name, "") for name in (source, target)]
    if not all(value.isascii() and value.isdigit() and len(value) < 19 for value in values):
        raise InputError(f"{source} and {target} must be numbers of entities.")
    return int(values[0]), int(values[1])


async def _refused(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 400)


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=400)


async def _failed(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "the server failed; its terminal says why."}, 500)
