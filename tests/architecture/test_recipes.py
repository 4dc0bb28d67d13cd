"""The recipes of CONTRIBUTING.md name files that exist, and three of them are followed in a copy of the source tree."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("autoscaler", "instance_catalog", "providers")
_ROW = re.compile(r"^\| `([^`]+)` \| (.+) \|$", re.MULTILINE)


def recipes() -> dict[str, dict[str, str]]:
    """Title → file → change, as the tables of CONTRIBUTING.md have them."""
    _, _, section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Recipes")
    chapters = section.partition("\n## ")[0].split("\n### ")[1:]
    return {chapter.partition("\n")[0]: dict(_ROW.findall(chapter)) for chapter in chapters}


def test_there_are_four_recipes() -> None:
    assert list(recipes()) == [
        "Add a provider", "Add a driver in Python", "Add a Kubernetes version", "Add a command",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("title", "files"), recipes().items(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_listed_files_exist(title: str, files: dict[str, str]) -> None:
    assert len(files) > 4, title
    for name, change in files.items():
        new = change.startswith("new: ")
        path = ROOT / (str(Path(name).parent).replace("/NAME", "") if new else name)
        assert path.exists(), f"{title}: {name}"
        assert new == ("NAME" in name), f"{title}: {name}"


def test_the_recipe_of_a_provider_lists_every_file_that_knows_one() -> None:
    """kwok is the smallest of the built-in providers: what names its node template, another provider has to change."""
    listed = recipes()["Add a provider"].keys()
    knowing = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "autoscaler").rglob("*.py")
        if re.search(r"KwokNodeTemplate|KWOK_NODE_TEMPLATES", path.read_text(encoding="utf-8"))
    }
    assert len(knowing) > 5
    assert {name for name in knowing if name.replace("/kwok.py", "/NAME.py") not in listed} == set()


@dataclass(frozen=True)
class Copy:
    """A copy of the packages, in which only the files of one recipe may change."""

    root: Path
    files: frozenset[str]

    def write(self, name: str, text: str, *, placeholder: str) -> None:
        """Create a new file of the recipe."""
        assert placeholder in self.files
        (self.root / name).write_text(text, encoding="utf-8")

    def insert(self, name: str, text: str, *, before: str) -> None:
        """Put lines into a listed file, in front of a text that it has once."""
        assert name in self.files
        old = (self.root / name).read_text(encoding="utf-8")
        assert old.count(before) == 1, f"{name} has changed; adapt this test, and the recipe if its steps changed"
        (self.root / name).write_text(old.replace(before, text + before), encoding="utf-8")

    def run(self, *arguments: str) -> str:
        """What the command prints in the copy."""
        done = subprocess.run(
            [sys.executable, "-P", "-m", "autoscaler.cli", *arguments],
            capture_output=True, text=True, check=False, timeout=120, cwd=self.root, env={"PYTHONPATH": str(self.root)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout


def copy_for(title: str, folder: Path) -> Copy:
    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return Copy(folder, frozenset(recipes()[title]))


NIC_FACTS = """\
profile: demo-nic
driver: nic.example.com
source: an invented driver
releases:
  - {name: v0.1.0, features: [index-first-slice-names]}
device_classes:
  - name: nic.example.com
    selectors: ['device.driver == "nic.example.com"']
"""

NIC_MODULE = '''\
"""nic.example.com: one device for each node."""

from __future__ import annotations

from typing import Final

from instance_catalog.drivers.profile import DriverProfile
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import Device
from instance_catalog.prediction.driver import SliceContents
from instance_catalog.prediction.driver import Prediction
from instance_catalog.types.instance_type import InstanceType


def runs_on(instance_type: InstanceType) -> bool:
    """Every type has the device."""
    return True


def contents(
    instance_type: InstanceType, profile: DriverProfile, kubernetes: KubernetesProfile
) -> tuple[SliceContents, ...]:
    """One slice with one device."""
    return (SliceContents((Device("nic-0", FrozenMap({"speed": "fast"})),)),)


PREDICTION: Final = Prediction(runs_on, contents)
'''


def test_the_recipe_of_a_driver_is_complete(tmp_path: Path) -> None:
    copy = copy_for("Add a driver in Python", tmp_path)
    copy.write(
        "instance_catalog/data/drivers/nic.example.com.yaml", NIC_FACTS,
        placeholder="instance_catalog/data/drivers/NAME.yaml",
    )  # fmt: skip
    copy.write(
        "instance_catalog/prediction/drivers/demo_nic.py", NIC_MODULE,
        placeholder="instance_catalog/prediction/drivers/NAME.py",
    )  # fmt: skip
    copy.insert("instance_catalog/data/drivers/defaults.yaml", "  demo-nic: {release: v0.1.0}\n", before="  dra-cpu: ")
    copy.insert("instance_catalog/prediction/predict.py", "    demo_nic,\n", before="    dra_cpu,\n")
    copy.insert(
        "instance_catalog/prediction/predict.py", '    "demo-nic": demo_nic.PREDICTION,\n',
        before='    "dra-cpu": dra_cpu.PREDICTION,\n',
    )  # fmt: skip
    printed = copy.run("slices", "g6.xlarge", "--drivers", "demo-nic@v0.1.0", "-o", "yaml")
    assert "driver: nic.example.com" in printed
    assert "string: fast" in printed


def test_the_recipe_of_a_kubernetes_version_is_complete(tmp_path: Path) -> None:
    copy = copy_for("Add a Kubernetes version", tmp_path)
    copy.insert(
        "instance_catalog/kubernetes/profile.py",
        "    KubernetesProfile((1, 99, 0), Gates(device_taint_rules=True), _A37, _C37, _S37),\n",
        before=")\nREFERENCE = ",
    )
    assert "v1.99.0" in copy.run("version")
    printed = copy.run(
        "cel", "device.driver == 'gpu.nvidia.com'", "--type", "g6.xlarge", "--kubernetes-version", "1.99"
    )
    assert printed.startswith("Kubernetes v1.99.0, ")


def test_the_recipe_of_a_command_is_complete(tmp_path: Path) -> None:
    copy = copy_for("Add a command", tmp_path)
    copy.write(
        "autoscaler/cli/greet.py",
        '"""`foreslice greet`."""\n\nimport click\n\n\n@click.command()\ndef greet() -> None:\n    """In one word."""\n'
        '    click.echo("hello")\n',
        placeholder="autoscaler/cli/NAME.py",
    )
    copy.insert(
        "autoscaler/cli/main.py", '    "greet": ("autoscaler.cli.greet:greet", "Greet."),\n', before='    "plan": ('
    )
    assert copy.run("greet") == "hello\n"
    assert "Greet." in copy.run("--help")
