"""Whatever answers in an API server's place, commands say so in one sentence and what to do, without a traceback."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autoscaler.cli import main as command_line
from autoscaler.cli import run as run_command
from instance_catalog.dataclass import replace
from tests.fakes.http_api import HttpApi, Spoiled, serving

LOGIN = Spoiled(b"<!DOCTYPE html>\n<html><head><title>Sign in\x1b]0;owned\x07</title></head></html>")
JSON = {"Content-Type": "application/json"}
WHOLE: dict[str, tuple[Spoiled, str]] = {
    "a login page": (LOGIN, r'\(200, text/html\) is no JSON: "<!DOCTYPE html> <html><head><title>Sign in'),
    "a login page that forbids": (replace(LOGIN, status=403), r"\(403, text/html\) is none of an API server"),
    "a page that is not there": (replace(LOGIN, status=404), r"\(404, text/html\) is none of an API server"),
    "a redirect": (
        Spoiled(b"", 302, {"Location": "https://me:secret@login.example.com/auth?next=secret"}),
        r"\(302, no content type, redirects to https://login\.example\.com\)",
    ),
    "another server's 404": (
        Spoiled(b"default backend - 404\n", 404, {"Content-Type": "text/plain"}),
        r'is no Kubernetes API server: GET /version: "default backend - 404" \(404\)',
    ),
    "half an object": (Spoiled(b'{"gitVersion": "v1.3', 200, JSON), "ends or breaks within its JSON, after 20 bytes"),
    "less than announced": (Spoiled(b'{"gitVersion": "v1.36.3"', 200, JSON, lost=9), "no answer from"),
    "nothing": (Spoiled(b"", 200, JSON), "is no JSON"),
    "null": (Spoiled(b"null", 200, JSON), 'is not an object: "null"'),
    "a list": (Spoiled(b"[1]", 200, JSON), "is not an object"),
    "no fields": (Spoiled(b"{}", 200, JSON), "has no gitVersion"),
    "a number for a text": (Spoiled(b'{"gitVersion": 7}', 200, JSON), "has no gitVersion"),
    "a strange version": (Spoiled(b'{"gitVersion": "\\u001b[2Jnew"}', 200, JSON), "new"),
    "binary": (Spoiled(bytes(range(256)), 200, {"Content-Type": "application/octet-stream"}), "is no JSON"),
    "zipped that is not": (Spoiled(b"no", 200, {**JSON, "Content-Encoding": "gzip"}), "no answer from"),
}
COMMANDS = (
    ("run",),
    ("plan", "--live"),
    ("status",),
    ("explain", "train"),
    ("nodes",),
    ("blocks",),
    ("doctor",),
    ("catalog", "learn"),
)
Invoke = Callable[..., str]


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Invoke:
    """Run a command that fails, as the entry point does: what it says."""

    def invoked(kubeconfig: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["foreslice", *arguments, "--kubeconfig", kubeconfig])
        monkeypatch.setattr(run_command, "log_to_stderr", lambda *_: None)
        assert command_line._run() == 1
        return capsys.readouterr().err

    return invoked


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repetitions wait for nothing."""
    monkeypatch.setattr("autoscaler.clock.SystemClock.wait", lambda *_: None)


def sentence(said: str) -> str:
    """What is wrong. It is followed by one line that says what to do."""
    lines = said.splitlines()
    assert len(lines) == 2, said
    assert lines[0].startswith("error: ")
    assert len(lines[0]) < 500
    assert lines[1].startswith("  ")
    assert len(lines[1]) > 20
    assert all(line.isprintable() for line in lines), said
    assert "secret" not in said
    return lines[0]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("name", ["a login page", "half an object", "no fields"])
def test_every_command_says_what_answers(tmp_path: Path, invoke: Invoke, command: tuple[str, ...], name: str) -> None:
    answer, message = WHOLE[name]
    with serving(tmp_path, spoiled={"/": answer}) as api:
        said = sentence(invoke(api.kubeconfig, *command))
    assert re.search(message, said), said
    assert re.search(r"http://127\.0\.0\.1:\d+", said), said


@pytest.mark.parametrize(("answer", "message"), WHOLE.values(), ids=WHOLE)
def test_whatever_answers_is_told(tmp_path: Path, invoke: Invoke, answer: Spoiled, message: str) -> None:
    with serving(tmp_path, spoiled={"/": answer}) as api:
        said = sentence(invoke(api.kubeconfig, "status"))
    assert re.search(message, said), said


def items(*found: object, **metadata: object) -> Spoiled:
    return Spoiled(json.dumps({"metadata": metadata, "items": found}).encode(), 200, JSON)


PODS: dict[str, tuple[Spoiled, str]] = {
    "a login page": (LOGIN, "is no JSON"),
    "half a list": (Spoiled(b'{"items":[{"metadata":{"name":"a"', 200, JSON), "ends or breaks within its JSON"),
    "no metadata": (Spoiled(b'{"items":[]}', 200, JSON), "has no metadata"),
    "no resourceVersion": (items(), "has no resourceVersion"),
    "an object without metadata": (items({}, resourceVersion="1"), "has no metadata"),
    "an object without a name": (items({"metadata": {}}, resourceVersion="1"), "has no name"),
    "an object that is a text": (items("x", resourceVersion="1"), r"has no items\[\]"),
    "items that are a number": (Spoiled(b'{"metadata":{"resourceVersion":"1"},"items":7}', 200, JSON), "has no items"),
    "not there": (Spoiled(b"404 page not found\n", 404, {"Content-Type": "text/plain"}), "which every API server has"),
}


@pytest.mark.parametrize(("answer", "message"), PODS.values(), ids=PODS)
def test_a_list_that_is_none_is_told(tmp_path: Path, invoke: Invoke, answer: Spoiled, message: str) -> None:
    with serving(tmp_path, spoiled={"/api/v1/pods": answer}) as api:
        said = sentence(invoke(api.kubeconfig, "plan", "--live"))
    assert re.search(message, said), said


@pytest.mark.parametrize("body", [b"[]", b'{"versions": 7}', b'{"versions": [7, {}]}', LOGIN.body], ids=str)
def test_discovery_that_is_none_is_told(tmp_path: Path, invoke: Invoke, body: bytes) -> None:
    with serving(tmp_path, spoiled={"/apis/resource.k8s.io": Spoiled(body, 200, JSON)}) as api:
        sentence(invoke(api.kubeconfig, "doctor"))


def edited(api: HttpApi, **user: Any) -> str:
    """The kubeconfig with another user or, under `server`, another address."""
    path = Path(api.kubeconfig)
    config = json.loads(path.read_text())
    if server := user.pop("server", ""):
        config["clusters"][0]["cluster"] = {"server": server}
    config["users"][0]["user"] = user
    path.write_text(json.dumps(config))
    return str(path)


def plugin(folder: Path, script: str) -> dict[str, Any]:
    path = folder / "credentials"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"apiVersion": "client.authentication.k8s.io/v1", "command": str(path), "interactiveMode": "Never"}


@pytest.mark.parametrize(
    ("script", "message"),
    [
        pytest.param("echo 'your session is over' >&2; exit 3", "your session is over", id="it fails"),
        pytest.param("echo '<html>'", "failed to decode", id="it answers no JSON"),
        pytest.param("echo '[]'", "missing key", id="it answers a list"),
        pytest.param("echo '{}'", "missing key", id="it answers without fields"),
        pytest.param(
            """echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{}}'""",
            "missing token",
            id="it gives no token",
        ),
    ],
)
def test_a_credential_plugin_that_fails_is_told(tmp_path: Path, invoke: Invoke, script: str, message: str) -> None:
    with serving(tmp_path) as api:
        said = sentence(invoke(edited(api, exec=plugin(tmp_path, script)), "status"))
    assert message in said


def test_a_credential_plugin_that_is_not_installed_is_told(tmp_path: Path, invoke: Invoke) -> None:
    missing = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/does/not/exist"}
    with serving(tmp_path) as api:
        said = sentence(invoke(edited(api, exec=missing), "status"))
    assert "/does/not/exist" in said


@pytest.mark.parametrize(
    ("server", "message"),
    [
        pytest.param("http://me:secret@127.0.0.1:1", r"no answer from http://127\.0\.0\.1:1 ", id="nobody listens"),
        pytest.param("https://127.0.0.1:{port}", "no answer from https://127", id="no TLS there"),
        pytest.param("ftp://127.0.0.1", "ftp://127.0.0.1", id="another protocol"),
        pytest.param("http://[::1", "Invalid IPv6 URL", id="no address"),
        pytest.param("http://" + "a" * 300 + ".example", "no", id="a name that is too long"),
        pytest.param("http://127.0.0.1:99999", "", id="no port"),
    ],
)
def test_an_address_that_cannot_be_used_is_told(tmp_path: Path, invoke: Invoke, server: str, message: str) -> None:
    with serving(tmp_path) as api:
        port = re.search(r":(\d+)\"", Path(api.kubeconfig).read_text())
        assert port is not None
        said = sentence(invoke(edited(api, server=server.replace("{port}", port[1])), "status"))
    assert re.search(message, said), said


def test_a_token_that_no_header_may_hold_is_not_repeated(tmp_path: Path, invoke: Invoke) -> None:
    with serving(tmp_path) as api:
        said = sentence(invoke(edited(api, token="secret\nsecret"), "status"))
    assert "no request to http://127.0.0.1" in said


@pytest.mark.parametrize("content", ["", "no certificate"], ids=["empty", "text"])
def test_certificates_that_are_none_are_told(tmp_path: Path, invoke: Invoke, content: str) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_text(content)
    with serving(tmp_path) as api:
        path = Path(edited(api, server="https://127.0.0.1:1"))
        config = json.loads(path.read_text())
        config["clusters"][0]["cluster"]["certificate-authority"] = os.fspath(authority)
        path.write_text(json.dumps(config))
        sentence(invoke(str(path), "status"))
