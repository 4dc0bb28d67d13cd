"""Kubeconfigs that cannot be used: each says which file or context it is about, and what to do."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from kubernetes.config import incluster_config

from autoscaler.cluster.client.answers import address_of
from autoscaler.cluster.client.kubeconfig import default_namespace, load_configuration
from autoscaler.errors import ConfigurationError

GOOD = {
    "clusters": [{"name": "c", "cluster": {"server": "https://api.example.com:6443"}}],
    "users": [{"name": "u", "user": {"token": "t"}}],
    "contexts": [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in ("staging", "production")],
    "current-context": "staging",
}


@pytest.fixture(autouse=True)
def outside_a_pod(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "of-the-environment"))


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good"
    path.write_text(json.dumps(GOOD), encoding="utf-8")
    return path


def test_a_context_is_chosen(good: Path) -> None:
    assert load_configuration(kubeconfig=str(good), context="production").host == "https://api.example.com:6443"


def test_the_namespace_of_objects_that_name_none(good: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert default_namespace(kubeconfig=str(good)) == "default"
    config = {**GOOD, "contexts": [{"name": "staging", "context": {"cluster": "c", "user": "u", "namespace": "ml"}}]}
    good.write_text(json.dumps(config), encoding="utf-8")
    assert default_namespace(kubeconfig=str(good)) == "ml"
    assert default_namespace(kubeconfig=str(good), context="production") == "default"
    (tmp_path / "namespace").write_text("team\n", encoding="utf-8")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.delenv("KUBECONFIG")
    assert default_namespace() == "team"


def test_several_files_are_one_and_those_that_do_not_exist_count_as_empty(
    good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", f"/does/not/exist:{good}")
    assert load_configuration().host == "https://api.example.com:6443"


@pytest.mark.parametrize(
    ("context", "step"),
    [("stagin", "did you mean 'staging'?"), ("x", "the contexts are staging, production")],
)
def test_a_context_that_does_not_exist(context: str, step: str, good: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_configuration(kubeconfig=str(good), context=context)
    assert str(caught.value) == f"there is no context {context!r} in {good}\n  {step}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: [b", "cannot be read: while parsing a flow sequence"),
        (b"hello", "is not a kubeconfig: it holds no fields"),
        (b"\xff\xfe\xff", "cannot be read"),
        (b"contexts: []", "no Kubernetes cluster is configured"),
    ],
    ids=["no YAML", "text", "binary", "empty"],
)
def test_files_that_are_no_kubeconfigs(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=message) as caught:
        load_configuration(kubeconfig=str(path))
    assert "--kubeconfig" in caught.value.next_step


@pytest.mark.parametrize(
    ("place", "message"), [("a-folder", "cannot be read"), ("nothing", "there is no kubeconfig")], ids=str
)
def test_paths_that_lead_to_no_file(place: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a-folder").mkdir()
    with pytest.raises(ConfigurationError, match=message):
        load_configuration(kubeconfig=str(tmp_path / place))


@pytest.fixture
def pod(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Inside a pod: its mounted token."""
    token, authority = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("first")
    authority.write_text("a certificate")
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    for module in (incluster_config, sys.modules[incluster_config.load_incluster_config.__module__]):
        monkeypatch.setattr(module, "SERVICE_TOKEN_FILENAME", str(token))
        monkeypatch.setattr(module, "SERVICE_CERT_FILENAME", str(authority))
    return token


def sent(configuration: Any) -> str:
    return str(configuration.auth_settings()["BearerToken"]["value"])


def test_a_token_that_the_kubelet_has_renewed_is_used_at_once(pod: Path) -> None:
    found = load_configuration()
    assert (found.host, sent(found)) == ("https://10.0.0.1:443", "Bearer first")
    pod.write_text("second\n")
    assert sent(found) == "Bearer second"


def test_a_token_that_is_empty_is_no_token(pod: Path) -> None:
    found = load_configuration()
    pod.write_text("")
    with pytest.raises(ValueError, match="empty"):
        sent(found)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("users: [{token: hunter2: x\n", id="in a mapping"),
        pytest.param('token: "hunter2\\q"\n', id="a wrong escape"),
        pytest.param("token: {a: hunter2} hunter2\n", id="after a value"),
        pytest.param("token: hunter2\n\ttoken: hunter2\n", id="a tab"),
    ],
)
def test_a_broken_kubeconfig_tells_no_token(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bad"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"\(line \d\)") as caught:
        load_configuration(kubeconfig=str(path))
    assert "hunter2" not in f"{caught.value}{caught.value.__cause__}"


@pytest.mark.parametrize("url", ["https://u:hunter2@h:6443/a@b", "https://h:6443/a@b"])
def test_an_address_is_told_without_its_password(url: str) -> None:
    assert address_of(url) == "https://h:6443"
