"""Every command of the built wheel works, or names the extra to install; none ends in a traceback."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from autoscaler.cli.main import foreslice
from tests.installed.environment import EXTRAS, ROOT, Environment, built_wheel

EXAMPLES = ROOT / "docs" / "examples"
# What works with nothing but the wheel, with words of the answer.
WORKING = {
    "version": "instance types",
    f"plan -f {EXAMPLES}/whole-node.yaml": "1 node to launch",
    f"plan -f {EXAMPLES}/whole-node.yaml -o json": '"kind": "Plan"',
    f"explain -f {EXAMPLES}/whole-node.yaml train-0": "Pod default/train-0",
    f"diff {EXAMPLES}/whole-node.yaml {EXAMPLES}/gpu-by-memory.yaml": "$/h",
    f"lint -f {EXAMPLES}/whole-node.yaml": "nothing found",
    "slices p5.48xlarge": "gpu.nvidia.com",
    "cel true --type p5.48xlarge": "gpu-0",
    "catalog list --accelerator H100": "p5.48xlarge",
    "catalog show p5.48xlarge": "H100",
    "completion bash": "foreslice",
}
# What needs an extra, and which: the first that is missing.
NEEDING = {
    "plan --live": "cluster",
    "explain train": "cluster",
    "status": "cluster",
    "nodes": "cluster",
    "doctor": "cluster",
    "blocks list": "cluster",
    "run": "cluster",
    "aws check": "aws",
    "aws trial --template t --max-usd 1": "aws",
    "gcp trial --template t --max-usd 1": "gcp",
    "blocks find --type p5.48xlarge --count 1 --hours 24 --region us-east-1": "aws",
    "catalog sync aws --region us-east-1 --into types": "aws",
    "catalog sync gcp --project p --into types": "gcp",
    "probe": "probe",
}
_NEEDS = re.compile(r"pip install 'foreslice\[(\w+)\]'")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(built_wheel(tmp_path_factory.mktemp("wheel")))


@pytest.fixture(scope="module")
def plain(wheel: str, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    found = Environment.created(tmp_path_factory.mktemp("plain") / "env")
    found.install(wheel)
    return found


@pytest.fixture(scope="module")
def extended(plain: Environment, wheel: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Environment]:
    """By extra, the environment with it."""
    found = {}
    for extra in EXTRAS:
        found[extra] = Environment.created(tmp_path_factory.mktemp(extra) / "env", over=plain)
        found[extra].install(f"{wheel}[{extra}]")
    return found


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if not isinstance(command, click.Group):
        yield path
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from leaves(inner, (*path, name))


def test_help_of_every_command_without_extras(plain: Environment) -> None:
    """In one process, because each start takes a second: what every command imports is imported without extras."""
    commands = [*leaves(foreslice)]
    assert len(commands) > 25
    code = (
        "import sys; from click.testing import CliRunner; from autoscaler.cli.main import foreslice\n"
        "for line in sys.argv[1:]:\n"
        "    result = CliRunner().invoke(foreslice, [*line.split(), '--help'], catch_exceptions=True)\n"
        "    print(result.exit_code, line, result.exception or '')\n"
    )
    done = plain.python("-c", code, *(" ".join(path) for path in commands))
    assert [line for line in done.stdout.splitlines() if not line.startswith("0 ")] == []
    assert len(done.stdout.splitlines()) == len(commands), done.stderr


@pytest.mark.parametrize("line", WORKING)
def test_what_works_without_extras(plain: Environment, line: str) -> None:
    done = plain.run(*line.split())
    assert done.returncode == 0, done.stderr
    assert WORKING[line] in done.stdout


@pytest.mark.parametrize("line", NEEDING)
def test_the_extra_is_named(plain: Environment, line: str) -> None:
    done = plain.run(*line.split())
    assert "Traceback" not in done.stderr
    assert done.returncode == 1
    assert _NEEDS.findall(done.stderr) == [NEEDING[line]]


@pytest.mark.parametrize("line", NEEDING)
def test_with_the_extra_the_command_gets_further(extended: dict[str, Environment], line: str) -> None:
    """It works, or misses a cluster, credentials, a GPU, or one more extra; never a traceback, never the same extra."""
    extra = NEEDING[line]
    done = extended[extra].run(*line.split())
    assert "Traceback" not in done.stderr
    assert extra not in _NEEDS.findall(done.stderr)
    assert done.returncode in (0, 1, 3), done.stderr


def test_every_extra_is_tried() -> None:
    assert {*NEEDING.values(), "grpc", "tracing"} == {*EXTRAS}


def test_tracing_is_imported_with_its_extra(plain: Environment, extended: dict[str, Environment]) -> None:
    code = "from opentelemetry.sdk.trace import TracerProvider"
    assert plain.python("-c", code).returncode == 1
    assert extended["tracing"].python("-c", code).returncode == 0


def test_grpc_is_imported_with_its_extra(plain: Environment, extended: dict[str, Environment]) -> None:
    """What is asked for beside it, without a certificate or a cluster, is imported without it."""
    code = "import autoscaler.externalgrpc.server"
    assert "No module named 'grpc'" in plain.python("-c", code).stderr
    assert extended["grpc"].python("-c", code).returncode == 0
    assert plain.python("-c", "import autoscaler.composition.external_grpc").returncode == 0


def test_the_size_without_extras(plain: Environment) -> None:
    """README and docs/install.md say what it takes."""
    assert plain.megabytes() < 170
