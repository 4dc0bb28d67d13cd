"""Addresses, and a real server on loopback."""

from __future__ import annotations

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from autoscaler.errors import ConfigurationError
from autoscaler.serve.listener import Listener, parse_address

APP = Starlette(routes=[Route("/", lambda request: PlainTextResponse("here"))])


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        pytest.param(":8080", "", 8080, id="all addresses"),
        pytest.param("127.0.0.1:0", "127.0.0.1", 0, id="any port"),
        pytest.param("[::1]:8080", "::1", 8080, id="IPv6"),
        pytest.param("localhost:80", "localhost", 80, id="name"),
    ],
)
def test_addresses_are_read(text: str, host: str, port: int) -> None:
    assert parse_address(text) == (host, port)


@pytest.mark.parametrize("text", ["", "8080", "host:", ":http", ":99999", "[::1:80", ":-1", ":٣"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is not an address") as caught:
        parse_address(text)
    assert ":8080" in caught.value.next_step


def test_it_answers_from_start_to_stop() -> None:
    listener = Listener(APP, "127.0.0.1:0")
    listener.start()
    address = f"http://127.0.0.1:{listener.port}/"
    assert address == f"http://{listener.address}/"
    with httpx.Client(trust_env=False) as client:
        answer = client.get(address)
        assert answer.text == "here"
        assert "server" not in answer.headers
    listener.stop()
    with httpx.Client(trust_env=False) as client, pytest.raises(httpx.ConnectError):
        client.get(address)


def test_an_address_in_use_ends_the_start_with_a_reason() -> None:
    first = Listener(APP, "127.0.0.1:0")
    with pytest.raises(ConfigurationError, match="cannot be listened on") as caught:
        Listener(APP, f"127.0.0.1:{first.port}")
    assert "set another address" in caught.value.next_step
    first.stop()


def test_all_addresses_means_all_of_them() -> None:
    listener = Listener(APP, ":0")
    listener.start()
    with httpx.Client(trust_env=False) as client:
        assert client.get(f"http://127.0.0.1:{listener.port}/").text == "here"
    assert listener.address in (f"[::]:{listener.port}", f"0.0.0.0:{listener.port}")
    listener.stop()
