"""The table of keys has no key twice and only keys that Kubernetes accepts."""

from __future__ import annotations

import re
from collections import Counter

from instance_catalog.kubernetes import labels

KEYS = {name: value for name, value in vars(labels).items() if name.isupper() and isinstance(value, str)}
# A label key: an optional DNS subdomain, then a name of at most 63 characters; prefixes end in "/" or "-".
SYNTAX = re.compile(r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def test_no_key_is_in_the_table_twice() -> None:
    assert [key for key, count in Counter(KEYS.values()).items() if count > 1] == []


def test_every_key_is_valid() -> None:
    wrong = [k for n, k in KEYS.items() if not SYNTAX.fullmatch(k + "x" if n.endswith(("_PREFIX", "_LAYER")) else k)]
    assert wrong == []


def test_our_keys_are_in_our_group() -> None:
    ours = [key for key in KEYS.values() if key.startswith("foreslice")]
    assert len(ours) > 10
    assert all(key == labels.GROUP or key.startswith(labels.GROUP + "/") for key in ours)
