"""Who is answered, and who is not; every request goes to this machine."""

import http.client
import json
import socket

import numpy as np
import pytest

from picograd import Tensor
from picograd.view.gather import gather
from picograd.view.server import ASSETS, Server


@pytest.fixture(scope="module")
def server():
    made = Server()
    made.add(gather(Tensor(np.ones((4, 4), np.float32), device="cpu").softmax(1), ()))
    yield made
    made.close()


def ask(server, path="", method="GET", whole="", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, whole or f"/{server.token}/{path}", headers=named)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer, content


def test_the_page_and_all_it_loads(server):
    answer, content = ask(server)
    assert answer.status == 200 and b"<title>picograd view" in content
    assert answer.getheader("Content-Type") == "text/html; charset=utf-8"
    policy = answer.getheader("Content-Security-Policy")
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy and "http" not in policy
    for path in ("main.js", "view.css", "vendor/uplot.mjs", "vendor/uplot.LICENSE"):
        answer, content = ask(server, f"assets/{path}")
        assert answer.status == 200 and content == (ASSETS / path).read_bytes()
    assert ask(server, "assets/vendor/uplot.mjs")[0].getheader("Content-Type").startswith("text/j")


def test_data(server):
    assert json.loads(ask(server, "api/runs")[1]) == ["Tensor[4, 4]"]
    run = json.loads(ask(server, "api/runs/0")[1])
    assert [step["kind"] for step in run["plans"][0]["steps"]] == ["reduce.row"]
    stages = json.loads(ask(server, "api/runs/0/0/0")[1])
    assert stages[0]["title"] == "Loop IR" and stages[-1]["title"] == "Machine code"


@pytest.mark.parametrize(
    "path",
    [
        "api/", "api/no", "api/runs/1", "api/runs/-1", "api/runs/x", "api/runs/0/0",
        "api/runs/0/0/9", "api/runs/0/9/0", "api/runs/0/x/0", "api/runs/0/0/0/0", "assets/",
        "assets/no.js", "assets/../server.py", "assets/%2e%2e/server.py", "assets/..%2fserver.py",
        "../server.py", "assets//etc/passwd", "assets/vendor", "assets/\\..\\server.py",
    ],
)  # fmt: skip
def test_what_is_not_there(server, path):
    answer, content = ask(server, path)
    assert answer.status == 404 and content == b"not found\n"


def test_wrong_tokens(server):
    wrong = server.token[:-1] + ("a" if server.token[-1] != "a" else "b")
    for path in (f"/{wrong}/", "/", "//", f"/{server.token}", f"/{wrong}/api/runs", "/api/runs"):
        assert ask(server, whole=path)[0].status == 404
    assert len(server.token) >= 32


def test_foreign_hosts_and_origins(server):
    here = f"127.0.0.1:{server.port}"
    assert ask(server, Origin=f"http://{here}")[0].status == 200
    assert ask(server, Host=f"localhost:{server.port}")[0].status == 200
    for host in ("example.org", f"example.org:{server.port}", "127.0.0.1", "", "127.0.0.1:1"):
        assert ask(server, Host=host)[0].status == 403
    for origin in ("null", "http://example.org", f"https://{here}", "http://127.0.0.1:1"):
        assert ask(server, Origin=origin)[0].status == 403
    for site in ("cross-site", "same-site"):
        assert ask(server, "api/runs", Sec_Fetch_Site=site)[0].status == 403
        assert ask(server, "assets/main.js", Sec_Fetch_Site=site)[0].status == 403
        link = {"Sec_Fetch_Site": site, "Sec_Fetch_Dest": "document"}
        assert ask(server, **link)[0].status == 200  # a link in a notebook
    assert ask(server, Sec_Fetch_Site="same-origin")[0].status == 200


def test_it_only_reads(server):
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        answer, _ = ask(server, method=method)
        assert answer.status == 501 and not answer.getheader("Access-Control-Allow-Origin")
    answer, content = ask(server, method="HEAD")
    assert answer.status == 200 and content == b""


def test_only_the_loopback_address_is_bound(server):
    assert server.http.server_address[0] == "127.0.0.1"
    with socket.socket() as other:
        other.settimeout(1)
        # 127.0.0.2 is this machine too, but not the address that was bound
        assert other.connect_ex(("127.0.0.2", server.port)) != 0


def test_a_kernel_that_cannot_be_made_says_why(server, monkeypatch):
    from picograd.errors import CompileError

    def fail(plan, kernel):
        raise CompileError("compile", "it is too large", "make it smaller")

    monkeypatch.setattr(server.runs[0], "stages", fail)
    (stage,) = json.loads(ask(server, "api/runs/0/0/0")[1])
    assert stage["title"] == "Error" and "it is too large" in stage["text"]


def test_tokens_differ():
    first, second = Server(), Server()
    assert first.token != second.token and first.port != second.port
    first.close(), second.close()
