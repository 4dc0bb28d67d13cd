"""Names say whose a machine is, fit into what Google allows, and read nothing into names of others."""

from __future__ import annotations

import re
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.errors import TemplateError
from providers.gcp.names import FILTER, MAX_NODES, SHORTEST, Names, batch_of, read
from tests.gcp import CLUSTER

WORDS = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=64)


@given(base=st.integers(1, 50), batch=WORDS, token=WORDS, node=st.integers(0, MAX_NODES - 1))
def test_a_name_is_read_back(base: int, batch: str, token: str, node: int) -> None:
    names = Names(CLUSTER, batch, token, "parameters", "g" * base)
    name = names.of(node)
    assert re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", name)
    found = read(name, CLUSTER)
    assert found is not None
    assert (found.node, found.batch) == (node, batch_of(CLUSTER, batch))
    assert names.has(found)
    assert names.alike(found)
    assert re.fullmatch(FILTER.removeprefix('name eq "').removesuffix('"'), name)


def test_other_parts_are_other_names() -> None:
    names = Names(CLUSTER, "b1", "t1", "p1", "gke-c1-a3-0a1b2c3d")
    others = [
        Names("other-cluster", "b1", "t1", "p1", names.base),
        Names(CLUSTER, "b2", "t1", "p1", names.base),
        Names(CLUSTER, "b1", "t2", "p1", names.base),
        Names(CLUSTER, "b1", "t1", "p2", names.base),
    ]
    assert len({one.of(0) for one in [names, *others]} | {names.of(1)}) == 6
    by_other_parameters = read(others[3].of(0), CLUSTER)
    assert by_other_parameters is not None
    assert names.has(by_other_parameters)
    assert not names.alike(by_other_parameters)


@pytest.mark.parametrize(
    "name",
    [
        "gke-c1-pool-0a1b2c3d-x7k2",
        "gpu",
        "gpu-production",
        "gpu-experiments",
        "g-0123456789",
        "g-00000000000000",
        "-",
        "",
    ],
)
def test_names_of_others_are_not_read(name: str) -> None:
    assert read(name, CLUSTER) is None


def test_another_cluster_reads_nothing() -> None:
    names = Names(CLUSTER, "b1", "t1", "p1", "gpu")
    assert read(names.of(0), "22222222-2222-3333-4444-555555555555") is None


BASE = "gke-research-a3-0a1b2c3d"
# Names of the form that all groups had before tokens of 20 bits: cluster CLUSTER, batch b1, token t1, parameters p1.
BEFORE = f"{BASE}-c9sqv8rc8t5b43"


def test_names_that_were_chosen_with_the_short_token_are_still_ours() -> None:
    found = read(BEFORE, CLUSTER)
    assert found is not None
    assert (found.node, found.token_bits) == (3, 10)
    names = Names(CLUSTER, "b1", "t1", "p1", BASE)
    assert names.has(found)
    assert names.alike(found)
    assert not Names(CLUSTER, "b1", "t2", "p1", BASE).has(found)
    assert len(names.of(3)) == len(BEFORE) + 2


def test_tokens_of_one_batch_rarely_share_a_name() -> None:
    tokens = [str(UUID(int=number)) for number in range(4096)]
    names = {Names(CLUSTER, "b1", token, "p1", BASE).of(0) for token in tokens}
    assert len(names) >= 4096 - 16


def test_two_clusters_of_a_project_rarely_share_the_names_of_the_shortest_suffix() -> None:
    name = Names(CLUSTER, "b1", "t1", "p1", "g" * 50).of(0)
    assert len(name.rpartition("-")[2]) == SHORTEST
    others = [str(UUID(int=number)) for number in range(4096)]
    assert sum(read(name, other) is not None for other in others) <= 1
    assert read("g-" + "0" * (SHORTEST - 1), CLUSTER) is None


def test_a_long_base_leaves_no_room() -> None:
    assert len(Names(CLUSTER, "b", "t", "p", "g" * 50).of(0)) == 63
    with pytest.raises(TemplateError) as raised:
        Names(CLUSTER, "b", "t", "p", "g" * 51).of(0)
    assert "may have 50 characters" in raised.value.next_step
