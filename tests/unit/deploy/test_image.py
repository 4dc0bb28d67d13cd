"""The image's parts fit together: what the Dockerfile copies is in its context, and the wheel holds all it needs.

No container is built here; docs/install.md says what was tried by hand.
"""

from __future__ import annotations

import re
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[3]
DOCKERFILE = (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES: list[str] = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
ADMITTED = [
    line.removeprefix("!")
    for line in (ROOT / "deploy/Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    if line.startswith("!")
]
# From the context, not from another stage.
COPIED = [
    source for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE) for source in line.split()[:-1]
]


@pytest.mark.parametrize("source", COPIED)
def test_what_is_copied_is_there_and_in_the_context(source: str) -> None:
    assert (ROOT / source).exists()
    assert source in ADMITTED


def test_the_wheel_is_built_of_what_is_copied() -> None:
    assert set(PACKAGES) | {
        "pyproject.toml",
        PROJECT["project"]["readme"],
        *PROJECT["project"]["license-files"],
    } <= set(COPIED)


def test_the_wheel_holds_every_file_of_the_packages(tmp_path: Path) -> None:
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    built = {name for name in zipfile.ZipFile(wheel).namelist() if name.partition("/")[0] in PACKAGES}
    files = (path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.is_file())
    there = {str(path.relative_to(ROOT)) for path in files if "__pycache__" not in path.parts}
    assert built == there
    assert "instance_catalog/data/accelerators.yaml" in built


def test_the_extras_and_the_command_exist() -> None:
    (extras,) = re.findall(r"foreslice-\*\.whl\)\[([^\]]+)\]", DOCKERFILE)
    assert set(extras.split(",")) <= set(PROJECT["project"]["optional-dependencies"])
    (command,) = re.findall(r'^ENTRYPOINT \["(.+)"\]$', DOCKERFILE, re.MULTILINE)
    assert command in PROJECT["project"]["scripts"]


def test_image_and_pod_run_as_the_same_user() -> None:
    (user,) = re.findall(r"^USER (\d+):\d+$", DOCKERFILE, re.MULTILINE)
    manifests = yaml.safe_load_all((ROOT / "deploy/manifests/deployment.yaml").read_text(encoding="utf-8"))
    (deployment,) = (found for found in manifests if found["kind"] == "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsUser"] == int(user) > 0
    assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"]
