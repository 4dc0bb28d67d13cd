"""deploy/probe-job.yaml: the command it runs exists, and reads where the node is mounted."""

from __future__ import annotations

from pathlib import Path

import click
import yaml

from autoscaler.cli.main import foreslice

JOB = Path(__file__).parents[3] / "deploy" / "probe-job.yaml"


def test_the_job_runs_the_command() -> None:
    pod = yaml.safe_load(JOB.read_text(encoding="utf-8"))["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    name, command, *arguments = container["command"]
    assert name == "foreslice"
    found = foreslice.get_command(click.Context(foreslice), command)
    assert found is not None
    options, _, _ = found.make_parser(click.Context(found)).parse_args(list(arguments))
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert mounts == {f"{options['host_root']}/{name}": name for name in ("proc", "sys")}
    assert {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"]} == {"proc": "/proc", "sys": "/sys"}
