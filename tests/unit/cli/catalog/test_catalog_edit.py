"""`foreslice catalog add`, `edit` and `set`: what is written, what is refused, and where the work is kept."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from autoscaler.cli.catalog import files as catalog_files
from autoscaler.cli.catalog.group import catalog
from autoscaler.errors import BadInputError
from instance_catalog.files.loader import load_catalog
from instance_catalog.files.yaml_text import read
from instance_catalog.types.instance_type import CapacityType, InstanceType


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return tmp_path / "my-types"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(catalog, [str(argument) for argument in arguments])


def refused(*arguments: object) -> str:
    result = run(*arguments)
    assert isinstance(result.exception, BadInputError), result.output
    return str(result.exception)


def loaded(directory: Path, name: str) -> InstanceType:
    return load_catalog(extra_dirs=[directory]).get(name)


def use_editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *commands: str) -> None:
    """An editor that runs these sed commands on the file."""
    script = tmp_path / "editor"
    script.write_text(f'#!/bin/sh\nsed -i {" ".join(f"-e {command!r}" for command in commands)} "$1"\n')
    script.chmod(0o755)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", str(script))


@pytest.mark.parametrize(
    ("assignment", "zone", "capacity_type", "expected"),
    [
        ("price=30", "us-east-1f", CapacityType.ON_DEMAND, "30"),
        ("price.spot=12.25", "us-east-1f", CapacityType.SPOT, "12.25"),
        ("price.us-east-1a=31.5", "us-east-1a", CapacityType.ON_DEMAND, "31.5"),
        ("price.us-east-1=31.5", "us-east-1c", CapacityType.ON_DEMAND, "31.5"),
        ("price.us-east-1a.spot=9", "us-east-1a", CapacityType.SPOT, "9"),
        ("price.us-east-1a=31.5", "us-east-1b", CapacityType.ON_DEMAND, "55.04"),
    ],
)
def test_a_price_is_set_where_it_holds(
    mine: Path, assignment: str, zone: str, capacity_type: CapacityType, expected: str
) -> None:
    result = run("set", "p5.48xlarge", assignment, "--reason", "contract", "--into", mine)
    assert result.exit_code == 0, result.exception
    found = loaded(mine, "p5.48xlarge").offering(capacity_type, zone=zone).usd_per_hour
    assert found == Decimal(expected)


def test_a_set_value_carries_reason_priority_and_end(mine: Path) -> None:
    run(
        "set",
        "p5.48xlarge",
        "vcpu=190",
        "--reason",
        "measured",
        "--expires",
        "2999-01-01",
        "--priority",
        4,
        "--into",
        mine,
    )
    shown = run("show", "p5.48xlarge", "--provenance", "--catalog", mine, "-o", "json").output
    row = next(row for row in read(shown) if row["field"] == "vcpu")
    assert (row["value"], row["source"], row["priority"], row["expires"]) == (
        190,
        "measured",
        4,
        "2999-01-01T00:00:00+00:00",
    )
    assert [(place["value"], place["file"]) for place in row["overrides"]] == [(192, "data/aws/p5.yaml")]


def test_an_accelerator_is_set_by_its_key(mine: Path) -> None:
    run("set", "nvidia-h200", "memory=143000Mi", "--reason", "driver 580", "--into", mine)
    accelerator = loaded(mine, "p5en.48xlarge").accelerator
    assert accelerator is not None
    assert str(accelerator.memory) == "143000Mi"


def test_names_of_resources_have_dots_of_their_own(mine: Path) -> None:
    run("set", "p5.48xlarge", "allocatable.vpc.amazonaws.com/efa=32", "--reason", "seen on a node", "--into", mine)
    run("set", "p5.48xlarge", "allocatable.hugepages-2Mi=5120Mi", "--reason", "seen on a node", "--into", mine)
    found = loaded(mine, "p5.48xlarge").allocatable
    assert {name: str(amount) for name, amount in found.items()} == {
        "hugepages-2Mi": "5Gi",
        "vpc.amazonaws.com/efa": "32",
    }


def test_setting_again_changes_the_same_file_and_keeps_its_comments(mine: Path) -> None:
    run("set", "p5.48xlarge", "vcpu=190", "--reason", "first", "--into", mine)
    (path,) = mine.iterdir()
    path.write_text("# for the auditors\n" + path.read_text())
    run("set", "p5.48xlarge", "vcpu=191", "--reason", "second", "--into", mine)
    assert [p.name for p in mine.iterdir()] == [path.name]
    assert path.read_text().startswith("# for the auditors\nreason: second\n")
    assert loaded(mine, "p5.48xlarge").vcpu == 191


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["p5.48xlarge", "vcpus=3"], "did you mean 'vcpu'"),
        (["p5.48xlarge", "vcpu=many"], "p5.48xlarge.vcpu.yaml:4: instance type p5.48xlarge: vcpu: found 'many'"),
        (["p5.48xlarge", "vcpu"], "write FIELD=VALUE"),
        (["p5.48xlarge", "vcpu=[1"], "is no YAML value"),
        (["p5.48xlrge", "vcpu=1"], "did you mean 'p5.48xlarge'"),
        (["p5e.48xlarge", "price=3"], "name a region: price.us-east-1=31.5"),
        (["p5.48xlarge", "price.a.b=3"], "capacity types are capacity-block"),
        (["p5.48xlarge", "price=-1"], "greater than or equal to 0"),
        (["p5.48xlarge", "vcpu=3", "--expires", "soon"], "a day such as 2026-12-31"),
        (["p5.48xlarge", "accelerator.count=7"], "8 values for 7 devices"),
    ],
)
def test_what_is_wrong_is_not_set(mine: Path, arguments: list[str], message: str) -> None:
    assert message in refused("set", *arguments, "--reason", "x", "--into", mine)
    assert not mine.exists() or not any(mine.iterdir())


def test_a_value_that_does_not_count_says_what_counts(mine: Path) -> None:
    mine.mkdir()
    (mine / "p5.48xlarge.yaml").write_text("types:\n  - {name: p5.48xlarge, vcpu: 190}\n")
    later = run("set", "p5.48xlarge", "vcpu=100", "--reason", "x", "--into", mine)
    assert later.stderr == (
        f"note: this does not count: {mine}/p5.48xlarge.yaml:2 says 190 and comes later; change it there, or give "
        "--priority 1\n"
    )
    assert run("set", "p5.48xlarge", "vcpu=100", "--reason", "x", "--priority", "1", "--into", mine).stderr == ""
    assert loaded(mine, "p5.48xlarge").vcpu == 100
    past = run("set", "nvidia-h200", "memory=1Gi", "--reason", "x", "--expires", "2020-01-01", "--into", mine)
    assert past.stderr == "note: this does not count: it expired at 2020-01-01 00:00Z\n"


def test_an_editor_that_is_not_there_is_named(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "no-such-editor")
    assert "no editor: no-such-editor" in refused("add", "box", "--into", mine)
    assert not mine.exists()


def test_an_edit_keeps_what_changed_with_its_comments(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_editor(monkeypatch, tmp_path, "s/vcpu: 192/vcpu: 190 # two are ours/")
    result = run("edit", "p5.48xlarge", "--into", mine)
    assert result.exit_code == 0, result.exception
    assert (mine / "p5.48xlarge.yaml").read_text() == "types:\n  - name: p5.48xlarge\n    vcpu: 190 # two are ours\n"

    use_editor(monkeypatch, tmp_path, "s/190/188/")
    assert "is saved" in run("edit", "p5.48xlarge", "--into", mine).output
    assert (mine / "p5.48xlarge.yaml").read_text() == "types:\n  - name: p5.48xlarge\n    vcpu: 188 # two are ours\n"


def test_an_edit_without_a_change_writes_nothing(mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_editor(monkeypatch, tmp_path, "s/no such text//")
    assert run("edit", "p5.48xlarge", "--into", mine).output == "nothing is changed\n"
    assert not mine.exists()


def test_a_defective_edit_leaves_the_file_and_keeps_the_work(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine.mkdir()
    path = mine / "p5.yaml"
    before = "types:\n  - {name: p5.48xlarge, vcpu: 190}\n"
    path.write_text(before)
    use_editor(monkeypatch, tmp_path, "s/190/many/")
    result = run("edit", path)
    assert isinstance(result.exception, BadInputError)
    assert f"{path}:2: instance type p5.48xlarge: vcpu: found 'many'" in result.stderr
    assert path.read_text() == before
    draft = re.search(r"your changes are in (\S+)", str(result.exception))
    assert draft is not None
    assert "vcpu: many" in Path(draft[1]).read_text()
    Path(draft[1]).unlink()


def test_a_defective_edit_can_be_corrected(mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine.mkdir()
    path = mine / "p5.yaml"
    path.write_text("types:\n  - {name: p5.48xlarge, vcpu: 190}\n")
    use_editor(monkeypatch, tmp_path, "s/many/191/", "s/190/many/")
    monkeypatch.setattr(catalog_files, "_is_terminal", lambda: True)
    result = CliRunner().invoke(catalog, ["edit", str(path)], input="y\n")
    assert result.exit_code == 0, result.exception
    assert "vcpu: 191" in path.read_text()
    assert [p.name for p in mine.iterdir()] == ["p5.yaml"]


def test_a_type_like_another_takes_over_all_but_prices_and_places(mine: Path) -> None:
    result = run("add", "p5x.24xlarge", "--into", mine, "--like", "p5.48xlarge", "--vcpu", 96, "--count", 4)
    assert result.exit_code == 0, result.exception
    found = loaded(mine, "p5x.24xlarge")
    assert (found.vcpu, found.device_count, found.placements, dict(found.prices)) == (96, 4, (), {})
    assert {card.placement.pcie_root for card in found.network_cards} == {None}
    assert found.provenance["accelerator"].guess
    assert f"foreslice slices p5x.24xlarge --catalog {mine}" in result.output


def test_a_type_is_added_from_options(mine: Path) -> None:
    options = "--cloud my-dc --vcpu 64 --memory 512Gi --accelerator nvidia-l40s --count 2 --price 3.5 --region cellar"
    assert run("add", "box", "--into", mine, *options.split()).exit_code == 0
    found = loaded(mine, "box")
    assert (found.cloud, found.device_count, found.price and found.price.usd_per_hour) == ("my-dc", 2, Decimal("3.5"))


@pytest.mark.parametrize("options", ["--cloud oci --vcpu 64 --memory 512Gi", "--like p5.48xlarge", ""])
def test_a_machine_with_capitals_keeps_its_spelling(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str
) -> None:
    use_editor(monkeypatch, tmp_path, "s/vcpu: 96/vcpu: 97/")
    result = run("add", "BM.GPU_H100.8", "--into", mine, *options.split())
    assert result.exit_code == 0, result.exception
    assert loaded(mine, "bm.gpu-h100.8").machine_type == "BM.GPU_H100.8"
    assert "is in the catalog already" in refused("add", "BM.GPU_H100.8", "--into", mine)


def test_a_type_is_added_from_the_template(mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_editor(monkeypatch, tmp_path, "s/vcpu: 96/vcpu: 97/")
    assert run("add", "box", "--into", mine).exit_code == 0
    assert loaded(mine, "box").vcpu == 97
    assert "# nominal, as the cloud states it" in (mine / "box.yaml").read_text()

    use_editor(monkeypatch, tmp_path, "s/no such text//")
    assert "nothing is added" in run("add", "box2", "--into", mine).output
    assert not (mine / "box2.yaml").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("p5.48xlarge --vcpu 3", "is in the catalog already"),
        ("box --vcpu 3", "memory: found nothing"),
        ("box --vcpu 3 --accelerator A100", "did you mean 'nvidia-a100-40gb' or 'nvidia-a100-80gb'?"),
        ("box --like p5.48xlarge --price 3", "give --region"),
        ("box --like p5.48xlarg", "did you mean 'p5.48xlarge'"),
        ("box --like p5.48xlarge --accelerator nvidia-h10", "did you mean"),
        ("../box --like p5.48xlarge", "text like"),
    ],
)
def test_what_is_wrong_is_not_added(mine: Path, arguments: str, message: str) -> None:
    assert message in refused("add", *arguments.split(), "--into", mine)
    assert not mine.exists() or not any(mine.iterdir())
