"""Nothing that a file, a cluster or an argument says reaches a terminal as it is, however a command prints it."""

from __future__ import annotations

import io
import json
import logging
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, cast

import pytest
import structlog
import yaml
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.cli import main as program
from autoscaler.cli.common.output import plain_table, yaml_text
from autoscaler.cli.common.terminal import behind, guarded_streams
from autoscaler.cluster.resources import (
    CAPACITY_BLOCKS,
    CAPACITY_POOLS,
    DEVICE_CLASSES,
    INSTANCE_TYPE_OVERLAYS,
    NODES,
    PODS,
    PROVISIONED_NODES,
    RESOURCE_CLAIMS,
)
from autoscaler.manifests.yaml_documents import read_yaml
from autoscaler.report.printable import one_line, printable, printable_json, printable_yaml, steers
from autoscaler.serve.logs import log_to_stderr
from autoscaler.settings.settings import LogFormat, LogSettings
from tests.fakes.http_api import HttpApi, serving
from tests.unit.cli.test_live_commands import GPU_CLASS, claim, pod, pool

# Sets the title of a terminal; hides a line; a C1 control sequence; reordering; no width; another line separator.
EVIL = "x\x1b]0;owned\x07\x1b[8m\x9b31m\u202eevil\u200b\u2028y\rz"
CATEGORIES = {"Cc", "Cf", "Cs", "Zl", "Zp"}
anything = st.text(st.characters(), max_size=12)
like_numbers = st.text("0178yYnNoOxXbBeEfF._+-~<T", max_size=6)


def test_what_steers_is_what_unicode_says() -> None:
    for number in range(sys.maxunicode + 1):
        character = chr(number)
        expected = unicodedata.category(character) in CATEGORIES and character not in "\n\t"
        if expected:
            assert steers(character), hex(number)
        elif steers(character):
            # Python's table may be older than this one.
            assert unicodedata.category(character) == "Cn", hex(number)


@given(anything)
def test_what_is_left_is_harmless_and_says_which_character_it_was(text: str) -> None:
    for found in (printable(text), one_line(text)):
        assert not steers(found)
        found.encode()
    assert "\n" not in one_line(text)
    assert printable(printable(text)) == printable(text)
    if not steers(text):
        assert printable(text) == text


@given(st.dictionaries(anything, anything | st.integers() | st.lists(anything, max_size=2), max_size=3))
def test_programs_read_what_was_there(data: dict[str, Any]) -> None:
    found = printable_json(json.dumps(data, ensure_ascii=False))
    assert not steers(found)
    assert json.loads(found) == data


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
        max_size=3,
    )
)
def test_so_do_programs_that_read_yaml(data: dict[str, str]) -> None:
    found = yaml_text(data)
    assert not steers(found)
    assert yaml.safe_load(found) == data
    assert printable_yaml(found) == found


@given(st.dictionaries(like_numbers, like_numbers, max_size=3))
def test_text_stays_text_as_kubernetes_reads_it(data: dict[str, str]) -> None:
    (document,) = read_yaml(yaml_text(data), "all.yaml")
    assert document.value == data


@given(st.lists(st.tuples(anything, anything), max_size=3))
def test_a_cell_stays_in_its_line(rows: list[tuple[str, str]]) -> None:
    lines = plain_table(("a", "b"), rows)
    assert len(lines) == len(rows) + 1
    assert not any(steers(line) or "\n" in line for line in lines)


@pytest.fixture
def api(tmp_path: Path) -> Iterator[HttpApi]:
    """A cluster in which every text that somebody may choose is hostile. The API server refuses some of these; a
    server that is not what it says does not."""
    with serving(tmp_path) as found:
        objects = found.objects
        objects.create(DEVICE_CLASSES, GPU_CLASS)
        wanted = claim("train", EVIL.replace("\n", ""))
        wanted["metadata"]["annotations"] = {"note": EVIL}
        objects.create(RESOURCE_CLAIMS, wanted)
        named = pod("train")
        named["metadata"] |= {"labels": {EVIL: EVIL}, "annotations": {"karpenter.sh/do-not-disrupt": EVIL}}
        named["spec"] |= {"nodeSelector": {EVIL: EVIL}, "schedulerName": "default-scheduler"}
        objects.create(PODS, named)
        objects.create(PODS, {**pod(EVIL), "spec": {**pod("train")["spec"], "priorityClassName": EVIL}})
        objects.create(NODES, {"metadata": {"name": EVIL, "labels": {EVIL: EVIL}}, "spec": {"providerID": EVIL}})
        objects.create(CAPACITY_POOLS, pool(labels={EVIL: EVIL}))
        second = pool(requirements=[{"key": EVIL, "operator": "In", "values": [EVIL]}])
        objects.create(CAPACITY_POOLS, {**second, "metadata": {"name": EVIL}})
        for resource in (CAPACITY_BLOCKS, PROVISIONED_NODES, INSTANCE_TYPE_OVERLAYS):
            objects.create(resource, {"metadata": {"name": EVIL}, "spec": {EVIL: EVIL, "source": EVIL}})
        yield found


def invoke(*arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of the program itself, so that errors become sentences."""
    before, sys.argv = sys.argv, ["foreslice", *arguments]
    try:
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err, guarded_streams():
            code = program._run()
    finally:
        sys.argv = before
    assert not steers(out.getvalue()), arguments
    assert not steers(err.getvalue()), arguments
    return code, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
@pytest.mark.parametrize(
    "command",
    [("status",), ("explain", "train"), ("nodes",), ("blocks",), ("doctor",), ("plan", "--live")],
    ids=lambda command: command[0],
)
def test_commands_of_a_cluster(api: HttpApi, command: tuple[str, ...], form: str) -> None:
    code, out, err = invoke(*command, "--kubeconfig", api.kubeconfig, "-o", form)
    assert code in (0, 3), err
    if form == "json":
        json.loads(out)


MANIFEST = yaml.safe_dump_all(
    [
        {**pod("train"), "apiVersion": "v1", "kind": "Pod", "metadata": {"name": EVIL, "labels": {EVIL: EVIL}}},
        {**claim(EVIL, EVIL), "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "extra": {EVIL: EVIL}},
        {"apiVersion": EVIL, "kind": EVIL, "metadata": {"name": EVIL}},
        {"apiVersion": "v1", "kind": "Pod", EVIL: EVIL, "metadata": {"name": "b"}, "spec": {"nodeSelector": EVIL}},
        {**pool(labels={EVIL: EVIL}), "apiVersion": "foreslice.dev/v1alpha1", "kind": "CapacityPool"},
    ]
)


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
@pytest.mark.parametrize("command", ["plan", "lint"])
def test_manifests(tmp_path: Path, command: str, form: str) -> None:
    path = tmp_path / f"{EVIL}.yaml"
    path.write_text(MANIFEST, encoding="utf-8")
    assert any(invoke(command, "-f", str(path), "-o", form)[1:])
    path.write_text(f'metadata: {{name: "{EVIL}" [}}', encoding="utf-8")
    assert invoke(command, "-f", str(path), "-o", form)[0] == 1


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("cel", f"device.driver == '{EVIL}'", "--type", "p5.48xlarge"), id="cel"),
        pytest.param(("cel", f"device.{EVIL}", "--type", "p5.48xlarge"), id="cel that does not parse"),
        pytest.param(("cel", "true", "--type", EVIL), id="cel on an unknown type"),
        pytest.param(("slices", EVIL), id="slices"),
        pytest.param(("catalog", "show", EVIL), id="catalog show"),
        pytest.param(("catalog", "list", "--accelerator", EVIL), id="catalog list"),
        pytest.param(("catalog", "list", "--catalog", EVIL), id="catalog of no directory"),
        pytest.param(("plan", "-f", EVIL), id="no file"),
        pytest.param(("plan", f"--{EVIL}"), id="no option"),
        pytest.param(("plan", "--live", "--kubeconfig", EVIL), id="no kubeconfig"),
        pytest.param(("plan", "--live", "--context", EVIL), id="no context"),
        pytest.param(("run", "--config", EVIL), id="no settings"),
        pytest.param(("run", "--loop-resync", EVIL), id="no duration"),
        pytest.param((EVIL,), id="no command"),
    ],
)
def test_arguments(arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    code, out, err = invoke(*arguments)
    assert code != 0 or arguments[0] == "cel"
    assert out + err


def test_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    with guarded_streams():
        try:
            raise ValueError(EVIL)
        except ValueError:
            sys.excepthook(*cast("Any", sys.exc_info()))
    told = capsys.readouterr().err
    assert "ValueError" in told
    assert not steers(told)


def test_a_stream_of_another_encoding_takes_every_name() -> None:
    raw = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    before, sys.stdout = sys.stdout, raw
    try:
        with guarded_streams():
            program.click.echo("größer \ud800")
            assert behind(sys.stdout) is raw
    finally:
        sys.stdout = before
    assert raw.buffer.getvalue() == b"gr\\xf6\\xdfer \\ud800\n"  # type: ignore[attr-defined]


@pytest.mark.parametrize("form", list(LogFormat))
def test_the_log(form: LogFormat) -> None:
    root, stream = logging.getLogger(), io.StringIO()
    handlers, level = root.handlers[:], root.level
    try:
        log_to_stderr(LogSettings(format=form), stream)
        log = structlog.get_logger("foreslice")
        log.warning(EVIL, pod=f"a/{EVIL}\nforged", pods=[EVIL], facts={EVIL: EVIL})
        try:
            raise ValueError(EVIL)
        except ValueError:
            log.exception("failed")
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.reset_defaults()
    assert not steers(stream.getvalue())
    assert not any(line.startswith("forged") for line in stream.getvalue().splitlines())


def test_commands_print_by_no_other_way() -> None:
    room = Path(program.__file__).parent
    for path in sorted(room.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        ways = ["sys.__std", ".buffer", "click.secho", "click.style", "print(", "behind("]
        if path.name not in ("terminal.py",):
            found = [way for way in ways if way in text.replace("_print(", "").replace("print_", "")]
            assert found in ([], ["behind("] if path.name == "run.py" else []), path.name
