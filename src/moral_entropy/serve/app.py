"""The web app: who may ask what, pages and their `.json`, decisions; and the server it runs on, for this machine alone.

A request is looked at in this order: its Host (a page elsewhere whose name was pointed at this machine is refused), the
token (in the address once, then a cookie), of writes the Origin and the length. Pages run no script but ours, from a
file, and load nothing from elsewhere.
"""

from __future__ import annotations

import json
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlencode

from moral_entropy.errors import MissingExtraError, MoralEntropyError, UsageError
from moral_entropy.report.words import TEMPLATES as OF_REPORT
from moral_entropy.runs.folder import plain_facts
from moral_entropy.runs.run import Run
from moral_entropy.serve.desk import Desk
from moral_entropy.serve.views import VIEWS, changed, describe, export

MOST_BODY = 64 * 1024
"""Bytes of a request, at most."""

HERE = Path(__file__).parent / "templates"
ASSETS = {
    "report.css": (OF_REPORT, "text/css"),
    "serve.css": (HERE, "text/css"),
    "serve.js": (HERE, "text/javascript"),
    "icon.svg": (HERE, "image/svg+xml"),
}
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def need_extra() -> None:
    """Raise a `MissingExtraError` unless Starlette and uvicorn are installed."""
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        needs = "serve needs Starlette and uvicorn"
        raise MissingExtraError(needs, "serve")


def make_app(desk: Desk, token: str, port: int) -> Any:
    """Return the app as a plain ASGI callable, guarded."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    routes = [
        Route("/", partial(_page, desk, name="start")),
        Route("/static/{name}", _asset),
        Route("/export/{name}", partial(_export, desk)),
        Route("/{name}.json", partial(_data, desk)),
        Route("/{name}", partial(_page, desk)),
        *(Route(f"/{name}", partial(_write, desk, act), methods=["POST"]) for name, act in WRITES.items()),
    ]
    return partial(_guard, Starlette(routes=routes), token, port)


async def _guard(app: Any, token: str, port: int, scope: Any, receive: Any, send: Any) -> None:
    """Let a request through, or say why not; every answer has the headers that keep a page to itself."""
    from starlette.requests import Request

    if scope["type"] != "http":
        await send({"type": "websocket.close"})
        return
    answer = _refusal(Request(scope), token, port) or app

    async def send_with_headers(message: Any) -> None:
        if message["type"] == "http.response.start":
            extra = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*message["headers"], *extra]}
        await send(message)

    await answer(scope, receive, send_with_headers)


def _refusal(request: Any, token: str, port: int) -> Any:
    """Return the answer to a request that is not let through; None where it is."""
    from starlette.responses import PlainTextResponse, RedirectResponse

    host = request.headers.get("host", "")
    if host not in {f"{name}:{port}" for name in ("localhost", "127.0.0.1", "[::1]")}:
        return PlainTextResponse("This address is not served here.", 403)
    cookie, offer = f"moral_entropy_{port}", request.query_params.get("token")
    if offer is not None and _same(offer, token):
        query = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
        answer = RedirectResponse(f"{quote(request.url.path)}?{urlencode(query)}".rstrip("?"), 303)
        answer.set_cookie(cookie, token, httponly=True, samesite="strict", path="/")
        return answer
    if not _same(request.cookies.get(cookie, ""), token):
        return PlainTextResponse("Open the address that the terminal shows: it has a token.", 403)
    if request.method in ("GET", "HEAD"):
        return None
    if request.headers.get("origin") != f"http://{host}":
        return PlainTextResponse("Decisions are taken from this page alone.", 403)
    length = request.headers.get("content-length", "")
    if not length.isdigit() or int(length) > MOST_BODY:
        return PlainTextResponse(f"At most {MOST_BODY:,} bytes.", 413)
    return None


def _same(text: str, token: str) -> bool:
    return secrets.compare_digest(text.encode(), token.encode())


def _person(desk: Desk, request: Any) -> str | None:
    name = unquote(request.cookies.get("moral_entropy_who", ""))
    return name if name in desk.names else desk.names[0] if len(desk.names) == 1 else None


def _json(data: Any, status: int = 200) -> Any:
    from starlette.responses import Response

    text = json.dumps(plain_facts(data), ensure_ascii=False, allow_nan=False)
    return Response(text, status, media_type="application/json")


def _asset(request: Any) -> Any:
    from starlette.responses import Response

    name = request.path_params["name"]
    if name not in ASSETS:
        return _json({"error": "there is no such file."}, 404)
    folder, kind = ASSETS[name]
    return Response((folder / name).read_bytes(), media_type=kind)


def _page(desk: Desk, request: Any, name: str | None = None) -> Any:
    """Return the frame of a page; its script asks for the data."""
    from starlette.responses import HTMLResponse

    name = name or request.path_params["name"]
    is_view = name in VIEWS
    page = (HERE / "page.html").read_text(encoding="utf-8")
    page = page.replace("{{ view }}", escape(name) if is_view else "missing")
    return HTMLResponse(page.replace("{{ run }}", escape(desk.run.folder.resolve().name)), 200 if is_view else 404)


def _data(desk: Desk, request: Any) -> Any:
    """Return the data of a page, with who sits there; names to choose from where nobody has said."""
    name, person = request.path_params["name"], _person(desk, request)
    if name not in VIEWS:
        return _json({"error": f"there is no page {name!r}: {', '.join(VIEWS)}."}, 404)
    people = {"who": person, "names": desk.names}
    # Whoever only looks need not say who they are.
    if person is None and name in ("check", "settle"):
        return _json(people)
    return _answered(lambda: VIEWS[name](desk, request.query_params, person or desk.names[0]) | people)


def _answered(answer: Callable[[], Any], respond: Callable[[Any], Any] = _json) -> Any:
    """Respond with what a function returns, as JSON by default; errors of data in words."""
    try:
        return respond(answer())
    except LookupError as error:
        return _json({"error": str(error)}, 404)
    except MoralEntropyError as error:
        return _json({"error": str(error)}, 400)


def _export(desk: Desk, request: Any) -> Any:
    from starlette.responses import Response

    name = request.path_params["name"]
    attachment = {"content-disposition": f"attachment; filename*=UTF-8''{quote(name)}"}
    respond = partial(Response, media_type="application/octet-stream", headers=attachment)
    return _answered(lambda: export(desk, name), respond)


# --- Writes ----------------------------------------------------------------------------------------------------------


async def _write(desk: Desk, act: Callable[[Desk, str, Mapping[str, Any]], Any], request: Any) -> Any:
    """Take a decision: the body is JSON, and the answer is given once it is on the disk."""
    from starlette.concurrency import run_in_threadpool

    try:
        body = json.loads(await request.body() or b"{}")
    except ValueError:
        body = None
    person = _person(desk, request)
    if not isinstance(body, dict) or person is None:
        return _json({"error": "say who you are first." if person is None else "that is no JSON."}, 400)
    return await run_in_threadpool(_answered, lambda: act(desk, person, body))


def _decide(desk: Desk, person: str, body: Mapping[str, Any]) -> Any:
    [entry] = desk.decide(person, body)
    explained = entry["kind"] == "settle" and entry["label"] is not None
    # A blind check is answered with nothing that tells votes or labels.
    return {"saved": entry["id"]} | ({"changed": changed(desk, entry)} if explained else {})


def _undo(desk: Desk, person: str, body: Mapping[str, Any]) -> Any:
    entry = desk.undo(person)
    return {"undone": entry and {name: entry[name] for name in ("kind", "question", "item")}}


def _confirm(desk: Desk, person: str, body: Mapping[str, Any]) -> Any:
    items = body.get("items")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        msg = "name the items that are confirmed."
        raise UsageError(msg)
    return {"confirmed": len(desk.decide(person, *(item | {"kind": "confirm"} for item in items)))}


def _more(desk: Desk, person: str, body: Mapping[str, Any]) -> Any:
    desk.log.append([desk.entry(person, "sheet")])
    return {}


def _make(desk: Desk, person: str, body: Mapping[str, Any]) -> Any:
    desk.make_run(partial(describe, desk))
    return desk.job


WRITES: dict[str, Callable[[Desk, str, Mapping[str, Any]], Any]] = {
    "decide": _decide,
    "undo": _undo,
    "confirm": _confirm,
    "more-checks": _more,
    "new-run": _make,
}
"""What a page can ask for beside data."""


# --- The server ------------------------------------------------------------------------------------------------------


def serve(run: Run, names: Sequence[str], *, port: int, ready: Callable[[str], None]) -> None:
    """Serve a run folder on this machine until a signal comes.

    Parameters
    ----------
    run
        The run.
    names
        Who decides.
    port
        The port; 0 for any that is free.
    ready
        Called with the address once connections are taken.
    """
    import uvicorn

    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", port))
        except OSError as error:
            msg = f"port {port} cannot be used: {error.strerror}. Choose another with --port, or leave it out."
            raise UsageError(msg) from error
        listening.listen(256)
        port, token = listening.getsockname()[1], secrets.token_urlsafe(24)
        desk = Desk(run, names)
        # What the first screen loads is loaded by now.
        VIEWS["start"](desk, {}, desk.names[0])
        app = make_app(desk, token, port)
        settings: dict[str, Any] = {"log_level": "error", "server_header": False, "timeout_graceful_shutdown": 3}
        server = uvicorn.Server(uvicorn.Config(app, interface="asgi3", lifespan="off", access_log=False, **settings))
        ready(f"http://127.0.0.1:{port}/?token={token}")
        server.run(sockets=[listening])
