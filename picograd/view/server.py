"""server: hands runs to a browser on this machine, and to nobody else.

It listens on the loopback address alone. Every address below it starts with a random token, so that
other users of the machine and pages of other sites cannot guess one; a request must name this
server as its host (a foreign name that points here does not), and may not come from another
origin. It answers GET and HEAD, nothing that changes anything. The page may load from this server
only, which the browser is told to enforce.
"""

import hmac
import json
import mimetypes
import secrets
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from threading import Lock, Thread
from typing import Any

from picograd.errors import PicogradError
from picograd.view.report import Run

LOOPBACK = "127.0.0.1"
HOSTS = (LOOPBACK, "localhost")
OWN_SITES = ("same-origin", "none")  # "none": the user typed the address
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
HEADERS = {
    "Content-Security-Policy": POLICY + "connect-src 'self'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",  # the address holds the token
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
ASSETS = files("picograd.view") / "assets"
TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css"}


class Refusal(Exception):
    """A request that is not answered: its HTTP status, and why."""


class Server:
    """This class serves runs, which may be added while it does; `url` is the page's address."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.token = secrets.token_urlsafe(24)
        self.lock = Lock()  # one kernel's stages are made at a time
        self.http = LoopbackServer((LOOPBACK, 0), Handler)
        self.http.owner = self
        self.port = self.http.server_address[1]
        self.thread = Thread(target=self.http.serve_forever, name="picograd.view", daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{LOOPBACK}:{self.port}/{self.token}/"

    def add(self, run: Run) -> int:
        """Add a run; returns its number."""
        self.runs.append(run)
        return len(self.runs) - 1

    def close(self) -> None:
        """Stop serving."""
        self.http.shutdown()
        self.http.server_close()

    def check(self, path: str, headers: Any) -> str:
        """Check a request's path and headers; returns what is below the token, or refuses."""
        hosts = [f"{host}:{self.port}" for host in HOSTS]
        if headers.get("Host") not in hosts:
            raise Refusal(403, "another host")
        origin = headers.get("Origin")
        if origin is not None and origin not in [f"http://{host}" for host in hosts]:
            raise Refusal(403, "another origin")
        is_link = headers.get("Sec-Fetch-Dest") == "document"  # a user follows it, in a notebook
        if headers.get("Sec-Fetch-Site", "none") not in OWN_SITES and not is_link:
            raise Refusal(403, "another site")
        token, slash, rest = path.partition("?")[0].removeprefix("/").partition("/")
        if not slash or not hmac.compare_digest(token.encode(), self.token.encode()):
            raise Refusal(404, "not found")
        return rest

    def answer(self, path: str) -> tuple[bytes, str]:
        """Find what is at a path below the token: content and its type."""
        if not path.startswith("api/"):
            return asset(path.removeprefix("assets/") if path else "index.html")
        try:
            return json.dumps(self.data(path.split("/")[1:])).encode(), "application/json"
        except (LookupError, ValueError) as error:
            raise Refusal(404, "not found") from error

    def data(self, words: list[str]) -> Any:
        """Find data: runs; runs/N; runs/N/PLAN/KERNEL."""
        if words[0] != "runs" or len(words) not in (1, 2, 4):
            raise LookupError(words)
        if len(words) == 1:
            return [run.title for run in self.runs]
        number, *place = [int(word) for word in words[1:] if word.isdecimal()]
        run = self.runs[number]
        if len(words) == 2:
            return run.data
        plan, kernel = place
        with self.lock:
            return stages_of(run, plan, kernel)


class LoopbackServer(ThreadingHTTPServer):
    """This class knows the server that it listens for."""

    daemon_threads = True
    owner: Server


class Handler(BaseHTTPRequestHandler):
    """This class answers one request."""

    server: LoopbackServer
    server_version = "picograd"
    sys_version = ""
    timeout = 30  # seconds for a request to arrive

    def do_GET(self) -> None:
        """Answer with a page, an asset or data."""
        owner = self.server.owner
        try:
            content, kind = owner.answer(owner.check(self.path, self.headers))
            self.reply(200, content, kind)
        except Refusal as refusal:
            status, reason = refusal.args
            self.reply(status, f"{reason}\n".encode(), "text/plain")

    do_HEAD = do_GET

    def reply(self, status: int, content: bytes, kind: str) -> None:
        """Send an answer."""
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *values: Any) -> None:
        """Print nothing."""


def asset(path: str) -> tuple[bytes, str]:
    """Read a file of the page."""
    place = ASSETS
    for part in path.split("/"):
        if part in ("", ".", "..") or "\\" in part or not part.isprintable():
            raise Refusal(404, "not found")
        place = place / part
    if not place.is_file():
        raise Refusal(404, "not found")
    suffix = f".{path.rpartition('.')[2]}"
    return place.read_bytes(), TYPES.get(suffix) or mimetypes.guess_type(path)[0] or "text/plain"


def stages_of(run: Run, plan: int, kernel: int) -> list[dict[str, str]]:
    """Write a kernel's stages; one that cannot be made says why."""
    try:
        return run.stages(plan, kernel)
    except PicogradError as error:
        return [{"title": "Error", "module": "", "path": "", "text": str(error)}]
