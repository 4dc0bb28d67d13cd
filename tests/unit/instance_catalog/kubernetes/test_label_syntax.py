"""What Kubernetes takes as a label or a taint; the cases follow its own tables (apimachinery util/validation)."""

from __future__ import annotations

import pytest

from instance_catalog.kubernetes.label_syntax import is_label_key, is_label_value, label_mistakes
from instance_catalog.kubernetes.taint import Taint

KEYS = ["simple", "now-with-dashes", "1-starts-with-num", "1234", "simple/simple", "a.b/c", "1.2.3.4/5678"]
KEYS += ["Uppercase_Is_OK_123", "example.com/Uppercase_Is_OK_123", "a" * 63, "a" * 253 + "/" + "b" * 63]
NO_KEYS = [
    "",
    "nospecialchars%^=@",
    "cantendwithadash-",
    "-cant",
    "only/one/slash",
    "Example.com/abc",
    "example_com/abc",
]
NO_KEYS += [
    "example.com/",
    "/simple",
    "a" * 64,
    "a" * 254 + "/abc",
    "a b",
    "a\n",
    "a\t",
    "a=b",
    "a,b",
    "é",
    "а",
    "a\x00",
]
VALUES = ["", "simple", "1.2", "A_b-c", "a" * 63]
NO_VALUES = [
    " ",
    "a b",
    "x --anonymous-auth=true",
    "a\n",
    "a\nKEY=value",
    "-a",
    "a-",
    "a" * 64,
    "é",
    "a,b=c",
    "a=b",
    "a'",
]


@pytest.mark.parametrize("text", KEYS)
def test_a_key(text: str) -> None:
    assert is_label_key(text)


@pytest.mark.parametrize("text", NO_KEYS)
def test_no_key(text: str) -> None:
    assert not is_label_key(text)
    assert list(label_mistakes({text: ""})) != []
    assert list(label_mistakes({}, [Taint(text)])) != []


@pytest.mark.parametrize("text", VALUES)
def test_a_value(text: str) -> None:
    assert is_label_value(text)
    assert list(label_mistakes({"a": text}, [Taint("a", text)])) == []


@pytest.mark.parametrize("text", NO_VALUES)
def test_no_value(text: str) -> None:
    assert not is_label_value(text)
    assert list(label_mistakes({"a": text})) != []
    assert list(label_mistakes({}, [Taint("a", text)])) != []


def test_an_effect_is_one_of_three() -> None:
    assert list(label_mistakes({}, [Taint("a", "", "NoSchedule,x=y:NoExecute")])) != []
