"""`foreslice slices`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from autoscaler.cli.slices import slices
from autoscaler.errors import BadInputError
from autoscaler.kube.resource_slice import parse_resource_slice

OWN_TYPE = """
cloud: aws
defaults: {architecture: amd64}
provenance:
  shape: {source: a test, date: 2026-08-21}
types:
  - name: my.gpu
    vcpu: 8
    memory: 32Gi
    accelerator: {model: nvidia-l4, count: 2}
    capacityTypes: [on-demand]
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(slices, arguments)


def test_p5_shows_gpus_channels_and_cards() -> None:
    lines = run("p5.48xlarge").stdout.splitlines()
    assert lines[0] == ("p5.48xlarge with nvidia v0.4.1 + compute-domain v0.4.1 + dranet v1.4.0, Kubernetes v1.36.3")
    assert "gpu.nvidia.com: pool future-node, 1 slice, 8 devices" in lines
    assert "dra.net: pool future-node, 1 slice, 32 devices" in lines
    (gpu,) = [line.split() for line in lines if " gpu-3 " in line]
    assert gpu[1:4] == ["gpu-3", "gpu", "81559Mi"]
    assert "resource.kubernetes.io/pcieRoot=pci0000:77" in gpu
    (common,) = [line for line in lines if "productName" in line]
    assert "productName=NVIDIA H100 80GB HBM3" in common
    assert "uuid=(run time)" in common
    assert "  nvidia:dynamic-mig,compute-domain,dranet" in lines


def test_a3_says_what_the_catalog_does_not_know() -> None:
    result = run("a3-highgpu-8g", "--drivers", "nvidia")
    assert result.exit_code == 0
    assert "resource.kubernetes.io/pcieRoot=(not in the catalog)" in result.stdout
    assert "(not in the catalog): the catalog does not have this fact yet" in result.stdout


def test_devices_that_share_a_value_show_its_group() -> None:
    lines = run("p5.48xlarge", "--drivers", "nvidia:dynamic-mig").stdout.splitlines()
    groups = {line.split()[1]: line for line in lines if " gpu-1" in line}
    assert "uuid=(run time, group 2)" in groups["gpu-1"]
    assert "parentUUID=(run time, group 2)" in groups["gpu-1-mig-3g40gb-9-4"]
    assert "gpu.nvidia.com: pool future-node, 9 slices, 208 devices, 8 counter sets" in lines


def test_groups_are_numbered_by_device_for_each_kind_of_value() -> None:
    lines = run("a2-highgpu-2g", "--drivers", "nvidia:mig=all-3g.20gb").stdout.splitlines()
    rows = [line for line in lines if "-mig-3g20gb-" in line]
    groups = [re.findall(r"(\w+)=\(run time, group (\d)\)", row) for row in rows]
    assert groups == [[("parentUUID", n), ("pciBusID", n)] for n in ("1", "1", "2", "2")]


@pytest.mark.parametrize(("form", "load"), [("json", json.loads), ("yaml", yaml.safe_load)], ids=["json", "yaml"])
def test_data_is_a_list_of_manifests_with_placeholders_marked(form: str, load: object) -> None:
    result = run("p5.48xlarge", "--drivers", "nvidia", "--node-name", "n1", "-o", form)
    document = load(result.stdout)  # type: ignore[operator]
    assert (document["apiVersion"], document["kind"]) == ("v1", "List")
    (manifest,) = document["items"]
    assert manifest["metadata"]["annotations"] == {
        "foreslice.dev/placeholders": "addressingMode,cudaDriverVersion,driverVersion,uuid"
    }
    read = parse_resource_slice(manifest)
    assert (read.reach.node_name, read.pool.name) == ("n1", "n1")
    assert str(read.devices[0].attributes["uuid"]).startswith("GPU-")
    assert result.stdout == run("p5.48xlarge", "--drivers", "nvidia", "--node-name", "n1", "-o", form).stdout


def test_an_older_api_server_gets_counters_and_devices_together() -> None:
    result = run("p5.48xlarge", "--drivers", "nvidia:dynamic-mig", "--kubernetes-version", "1.34", "-o", "json")
    items = json.loads(result.stdout)["items"]
    assert "unless the gate DRAPartitionableDevices is switched on" in result.stderr
    assert [(len(i["spec"]["sharedCounters"]), len(i["spec"]["devices"])) for i in items] == [(1, 26)] * 8


def test_own_catalog_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(OWN_TYPE)
    result = run("my.gpu", "--catalog", str(tmp_path))
    assert result.exit_code == 0, result.exception
    assert "gpu.nvidia.com: pool future-node, 1 slice, 2 devices" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["inf2.xlarge"], "what the Neuron driver publishes for Inferentia2 is not documented"),
        (["p5.48xlarge", "--drivers", "tpu"], "tpu v0.2.0 has no devices on this type"),
    ],
    ids=["not predictable", "another driver"],
)
def test_types_on_which_nothing_is_published_say_why(arguments: list[str], reason: str) -> None:
    assert f"Nothing is published: {reason}.\n" in run(*arguments).stdout


def test_what_an_api_server_drops_is_noted() -> None:
    drivers = "nvidia:dynamic-mig,example:shared:binding-conditions"
    notes = run("p5.48xlarge", "--drivers", drivers, "--kubernetes-version", "1.35").stderr.splitlines()
    assert [note.rpartition("the gate ")[2].partition(" ")[0] for note in notes] == [
        "DRAPartitionableDevices", "DRAConsumableCapacity", "DRADeviceBindingConditions",
    ]  # fmt: skip


def test_an_unknown_release_is_noted() -> None:
    result = run("g6.xlarge", "--drivers", "nvidia@v0.4.9")
    assert result.stderr == "note: nvidia v0.4.9 is not known; predicting as v0.4.1, the nearest release that is\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["p5.48xlarg"], "instance type 'p5.48xlarg' is not in the catalog; did you mean 'p5.48xlarge'"),
        (["p5.48xlarge", "--drivers", "nvida"], "--drivers nvida: no driver profile 'nvida'; did you mean 'nvidia'?"),
        (["p5.48xlarge", "--kubernetes-version", "1.20"], "Kubernetes 1.20 is older than v1.34.0"),
        (
            ["p5.48xlarge", "--drivers", "nvidia:mig=all-1g.5gb"],
            "H100 has no MIG layout 'all-1g.5gb'; it has all-1g.10gb, ",
        ),
        (["g6.xlarge", "--drivers", "dra-cpu"], "--into DIR --reason WHY`\n  choose one of:\n  nvidia,"),
        (["p5.48xlarge", "--catalog", "/not/there"], "/not/there"),
    ],
    ids=["type", "drivers", "version", "layout", "unpredictable", "catalog"],
)
def test_bad_input_says_what_to_do(arguments: list[str], message: str) -> None:
    error = run(*arguments).exception
    assert isinstance(error, BadInputError)
    assert message in str(error)
