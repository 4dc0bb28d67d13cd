"""The image's parts fit together: what the Dockerfile copies is in its context, and the wheel holds all it needs.

No container is built here; docs/install.md says what was tried by hand.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
import yaml
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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


def test_the_command_exists() -> None:
    (command,) = re.findall(r'^ENTRYPOINT \["(.+)"\]$', DOCKERFILE, re.MULTILINE)
    assert command in PROJECT["project"]["scripts"]


def test_bases_are_what_the_builder_names_by_digest() -> None:
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)) == {"${BASE_IMAGE}"}
    assert re.findall(r"^ARG (\S+)", DOCKERFILE, re.MULTILINE) == ["BASE_IMAGE"] * 2, "no default, which would be a tag"


@pytest.mark.parametrize(
    ("reference", "accepted"),
    [
        pytest.param("python:3.12-slim", False, id="tag"),
        pytest.param("python@sha256:abc", False, id="part of a digest"),
        pytest.param(f"python:3.12-slim@sha256:{'a' * 64}", True, id="digest"),
    ],
)
def test_a_base_without_its_digest_is_refused(reference: str, *, accepted: bool) -> None:
    (check,) = re.findall(r"^RUN (case .+? esac)$", DOCKERFILE, re.MULTILINE)
    done = subprocess.run(["sh", "-c", check], env={"BASE_IMAGE": reference}, check=False, capture_output=True)
    assert (done.returncode == 0) == accepted


def test_every_download_is_checked_by_its_hash() -> None:
    installs = re.findall(r"pip (?:install|wheel) (.+?)(?: &&|$)", DOCKERFILE, re.MULTILINE)
    assert len(installs) == 4
    for arguments in installs:
        own = "--no-index /wheels" in arguments or arguments.strip().endswith("--wheel-dir /wheels .")
        assert own or "--require-hashes" in arguments, arguments


@pytest.mark.parametrize("file", ["deploy/requirements.txt", "deploy/requirements-build.txt"])
def test_what_is_installed_is_locked_whole(file: str) -> None:
    """Every package that the listed ones need here is listed, and none of the development tools."""
    text = (ROOT / file).read_text(encoding="utf-8")
    listed = {canonicalize_name(name) for name in re.findall(r"^([A-Za-z0-9._-]+)==", text, re.MULTILINE)}
    for name in listed:
        try:
            needed = [Requirement(one) for one in requires(name) or ()]
        except PackageNotFoundError:
            continue  # of another Python or another system
        for one in needed:
            if one.marker is None or one.marker.evaluate({"extra": ""}):
                assert canonicalize_name(one.name) in listed, f"{name} needs {one.name}"
    assert not listed & {"pytest", "mypy", "ruff", "hypothesis"}


def test_image_and_pod_run_as_the_same_user() -> None:
    (user,) = re.findall(r"^USER (\d+):\d+$", DOCKERFILE, re.MULTILINE)
    manifests = yaml.safe_load_all((ROOT / "deploy/manifests/deployment.yaml").read_text(encoding="utf-8"))
    (deployment,) = (found for found in manifests if found["kind"] == "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsUser"] == int(user) > 0
    assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"]
