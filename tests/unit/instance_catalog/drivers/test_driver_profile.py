"""Driver sets as text."""

from __future__ import annotations

import pytest

from instance_catalog.drivers.profile import (
    DriverProfileError,
    DriverSet,
    DynamicMig,
    NoMig,
    StaticMig,
    assumed_profile,
    parse_driver_set,
)
from instance_catalog.frozen_map import FrozenMap


@pytest.mark.parametrize(
    "text",
    [
        "nvidia",
        "nvidia,compute-domain,dranet",
        "nvidia:dynamic-mig,compute-domain",
        "nvidia:dynamic-mig:mig-mode-on",
        "nvidia:mig=all-1g.10gb",
        "nvidia@v25.12.0:dynamic-mig",
        "nvidia:driver=580.126.09:cuda=13.0",
        "nvidia:MPSSupport=true",
        "nvidia@v0.5.0:DRAListTypeAttributes=true",
        "tpu:topology=4x4",
        "nvidia@v0.5.0:consumable-shares=4:ConsumableShares=true",
        "nvidia:PassthroughSupport=true",
        "amd:partition=cpx_nps4",
        "amd:AutoPartition=true",
        "dra-cpu:mode=individual:reserved=0-1+48-49:pcie-roots",
        "example:devices=4:partitions=2",
    ],
)
def test_a_driver_set_prints_as_the_text_it_was_read_from(text: str) -> None:
    driver_set = parse_driver_set(text)
    assert driver_set.text == text
    assert driver_set.notes == ()


def test_what_is_not_said_is_as_the_charts_ship_it() -> None:
    (profile,) = parse_driver_set("nvidia").profiles
    assert (profile.driver, profile.release, profile.mig, profile.options) == (
        "gpu.nvidia.com",
        "v0.4.1",
        NoMig(),
        FrozenMap(),
    )
    on = {"IMEXDaemonsWithDNSNames", "ComputeDomainCliques", "CrashOnNVLinkFabricErrors"}
    assert {gate for gate, value in profile.gates.items() if value} == on
    assert profile == assumed_profile("nvidia")


def test_mig_modes_and_their_gate_go_together() -> None:
    dynamic, static = parse_driver_set("nvidia:dynamic-mig").profiles[0], assumed_profile("nvidia", mig=StaticMig("x"))
    assert (dynamic.mig, dynamic.gates["DynamicMIG"]) == (DynamicMig(), True)
    assert (static.mig, static.gates["DynamicMIG"]) == (StaticMig("x"), False)
    assert parse_driver_set("nvidia:DynamicMIG=true") == parse_driver_set("nvidia:dynamic-mig")


@pytest.mark.parametrize(
    ("given", "release"),
    [("v0.4.7", "v0.4.1"), ("0.4", "v0.4.0"), ("v26.4.0", "v0.4.0"), ("v25.12.3", "v25.12.0"), ("v0.1.0", "v25.3.2"),
     ("v26.8.0", "v0.5.0"), ("v1.0.0", "v0.5.0")],
)  # fmt: skip
def test_an_unknown_release_becomes_the_nearest_older_one_with_a_note(given: str, release: str) -> None:
    driver_set = parse_driver_set(f"nvidia@{given}")
    assert driver_set.profiles[0].release == release
    assert driver_set.notes == (f"nvidia {given} is not known; predicting as {release}, the nearest release that is",)


def test_releases_may_be_written_without_v() -> None:
    driver_set = parse_driver_set("nvidia@25.12.0")
    assert (driver_set.profiles[0].release, driver_set.notes) == ("v25.12.0", ())


def test_gates_are_those_of_the_release() -> None:
    assert "DynamicMIG" not in parse_driver_set("nvidia@v25.8.1").profiles[0].gates
    assert "ConsumableShares" in parse_driver_set("nvidia@v0.5.0").profiles[0].gates


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nvida", "no driver profile 'nvida'; did you mean 'nvidia'? Write NAME"),
        ("", "no driver profile ''. Write NAME"),
        ("nvidia:dynamic-mg", "did you mean 'dynamic-mig'? It takes: dynamic-mig, mig-mode-on, mig=…"),
        ("nvidia:mig", "did you mean 'mig=…'?"),
        ("dranet:topology=2x2", "no option of dranet 'topology=2x2'. It takes: no-ena"),
        ("nvidia:mig=all-1g.5gb:dynamic-mig", "exclude each other"),
        ("nvidia:dynamic-mig:mig=all-1g.5gb", "exclude each other"),
        ("nvidia:dynamic-mig:MPSSupport=true", "gates DynamicMIG and MPSSupport of nvidia cannot be on together"),
        ("nvidia@v25.8.1:dynamic-mig", "has no gate DynamicMIG; take v25.12.0 or newer"),
        ("nvidia:PassthroughSupport=true:dynamic-mig", "gates DynamicMIG and PassthroughSupport of nvidia cannot"),
        ("nvidia:consumable-shares=4", "does nothing without its gate; add ConsumableShares=true"),
        (
            "nvidia@v0.5.0:ConsumableShares=true:consumable-shares=many",
            "option consumable-shares of nvidia takes unlimited, memory or a number of shares, not 'many'",
        ),
        ("dra-cpu:group-by=core", "option group-by of dra-cpu takes numanode, socket or machine, not 'core'"),
        ("dra-cpu:pcie-roots=yes", "no option of dra-cpu 'pcie-roots=yes'; did you mean 'pcie-roots'?"),
        ("nvidia:MPSSupport=yes", "takes true or false, not 'yes'"),
        ("nvidia:cuda=latest", "option cuda of nvidia takes a version such as"),
        ("nvidia:cuda=13.0.0.1", "option cuda of nvidia takes a version such as 580.126.09 or 13.0, not '13.0.0.1'"),
        ("tpu:topology=large", "option topology of tpu takes the chips of a slice, such as 2x4 or 4x4x4, not 'large'"),
        ("nvidia@latest", "'latest' is not a release of nvidia; known are v25.3.2, "),
        ("nvidia,nvidia:dynamic-mig", "given twice; combine its options with ':'"),
    ],
)
def test_what_cannot_be_read_says_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(DriverProfileError) as error:
        parse_driver_set(text)
    assert message in str(error.value)


def test_prepare_rules_say_what_a_driver_refuses_after_scheduling() -> None:
    assert assumed_profile("tpu").prepare.all_devices_of_node
    assert assumed_profile("compute-domain").prepare.one_compute_domain_per_node
    assert not assumed_profile("nvidia").prepare.all_devices_of_node


def test_profiles_are_found_and_replaced_by_name() -> None:
    driver_set = parse_driver_set("nvidia,dranet")
    dynamic = assumed_profile("nvidia", mig=DynamicMig())
    assert driver_set.with_profile(dynamic).text == "nvidia:dynamic-mig,dranet"
    assert driver_set.with_profile(assumed_profile("tpu")).text == "nvidia,dranet,tpu"
    assert driver_set.profile("tpu") is None
    assert DriverSet(()).label == "no DRA driver"
