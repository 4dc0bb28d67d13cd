"""Settings: a file, over it the environment, over both the flags; and what is said about what cannot be used."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from autoscaler.errors import BadInputError, ConfigurationError
from autoscaler.settings.load import read_settings
from autoscaler.settings.names import SECTIONS, Setting, all_settings
from autoscaler.settings.settings import DEFAULTS, LogFormat, Settings
from instance_catalog.dataclass import fields


def file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    return path


def test_without_anything_the_defaults_hold() -> None:
    assert read_settings(environment={}) == DEFAULTS


@pytest.mark.parametrize(
    ("variables", "flags", "idle"),
    [
        pytest.param({}, {}, 3, id="file"),
        pytest.param({"FORESLICE_BATCH_IDLE": "4s"}, {}, 4, id="environment over file"),
        pytest.param({"FORESLICE_BATCH_IDLE": "4s"}, {"--batch-idle": "5s"}, 5, id="flag over both"),
        pytest.param({"FORESLICE_BATCH_IDLE": ""}, {}, 3, id="an empty variable is none"),
    ],
)
def test_who_overrides_whom(tmp_path: Path, variables: dict[str, str], flags: dict[str, str], idle: int) -> None:
    path = file(tmp_path, "batch: {idle: 3s, longest: 20s}\nlease: {renewDeadline: 9s}\n")
    settings = read_settings(path, environment=variables, flags=flags)
    assert settings.batch.idle == timedelta(seconds=idle)
    assert settings.batch.longest == timedelta(seconds=20)  # other settings of the section stay
    assert settings.lease.renew_deadline == timedelta(seconds=9)
    assert settings.loop == DEFAULTS.loop


def test_every_kind_of_value_is_read(tmp_path: Path) -> None:
    path = file(
        tmp_path,
        "spending: {maxUsdPerHour: 12.5, maxLaunchesPerHour: 20, buyUnpriced: true}\n"
        "log: {format: console}\ncluster: {name: prod, catalog: [/a, /b]}\nperiods:\nserve: {pageAddress: 'off'}\n",
    )
    settings = read_settings(path, environment={"FORESLICE_SPENDING_MAX_USD_PER_DAY": "300"})
    assert settings.policy.max_usd_per_hour == Decimal("12.5")
    assert settings.policy.max_usd_per_day == Decimal(300)
    assert settings.policy.max_launches_per_hour == 20
    assert settings.policy.buy_unpriced
    assert settings.policy.budget == DEFAULTS.policy.budget
    assert settings.log.format is LogFormat.CONSOLE
    assert settings.cluster.catalog == ("/a", "/b")
    assert settings.serve.page_address == "off"


def test_lists_of_variables_are_split_at_commas() -> None:
    settings = read_settings(environment={"FORESLICE_CLUSTER_CATALOG": "/a, /b,"})
    assert settings.cluster.catalog == ("/a", "/b")


@pytest.mark.parametrize("setting", [s for s in all_settings() if s.default_text], ids=lambda setting: setting.key)
def test_the_default_of_every_setting_can_be_written_in_all_three_ways(tmp_path: Path, setting: Setting) -> None:
    text = setting.default_text
    section, _, key = setting.key.partition(".")
    path = file(tmp_path, f"{section}: {{{key}: {text if setting.type in (bool, int) else repr(text)}}}\n")
    assert read_settings(path, environment={}) == DEFAULTS
    assert read_settings(environment={setting.variable: text}) == DEFAULTS
    assert read_settings(environment={}, flags={setting.flag: text}) == DEFAULTS


@pytest.mark.parametrize(
    ("text", "message", "step"),
    [
        pytest.param("bach: {}", "there is no setting 'bach'", "did you mean 'batch'?", id="misspelt section"),
        pytest.param("batch: {idel: 3s}", "batch: there is no setting 'idel'", "did you mean 'idle'?", id="misspelt"),
        pytest.param("batch: {zz: 3s}", "there is no setting 'zz'", "the settings are: idle, longest", id="unknown"),
        pytest.param("{{", "cannot be read", "give a YAML file", id="not YAML"),
        pytest.param("- a", "is ['a'], not a mapping", "write sections such as", id="not a mapping"),
        pytest.param("batch: 3s", "batch is '3s', not a mapping", "write sections such as", id="not a section"),
        pytest.param("batch: {idle: soon}", "batch.idle: 'soon' is not a duration", "such as 1s", id="no duration"),
        pytest.param("batch: {idle: 3}", "batch.idle: 3 is not a duration", "such as 1s", id="no unit"),
        pytest.param("lease: {elect: perhaps}", "lease.elect: ", "lease.elect is true|false", id="no boolean"),
        pytest.param("spending: {maxUsdPerDay: -1}", "maxUsdPerDay: ", "US dollars, such as 12.50", id="negative"),
        pytest.param("spending: {maxUsdPerDay: .inf}", "maxUsdPerDay: ", "US dollars", id="infinite"),
        pytest.param("log: {level: loud}", "log.level: ", "debug|info|warning|error", id="no such level"),
        pytest.param("cluster: {name: 5}", "cluster.name: ", "cluster.name is text", id="no text"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, text: str, message: str, step: str) -> None:
    path = file(tmp_path, text)
    with pytest.raises(BadInputError) as caught:
        read_settings(path, environment={})
    assert caught.value.message.startswith(str(path))
    assert message in caught.value.message
    assert step in caught.value.next_step


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"none\.yaml cannot be read"):
        read_settings(tmp_path / "none.yaml", environment={})


@pytest.mark.parametrize(
    ("variables", "flags", "message"),
    [
        pytest.param({"FORESLICE_LOOP_RESYNC": "soon"}, {}, "FORESLICE_LOOP_RESYNC: 'soon'", id="variable"),
        pytest.param({"FORESLICE_LOOP_RESYNC": "1m"}, {"--loop-resync": "x"}, "--loop-resync: 'x'", id="flag"),
        pytest.param({"FORESLICE_BATCH_IDEL": "1s"}, {}, "no setting 'FORESLICE_BATCH_IDEL'", id="misspelt variable"),
    ],
)
def test_the_name_under_which_it_was_given_is_told(
    variables: dict[str, str], flags: dict[str, str], message: str
) -> None:
    with pytest.raises(BadInputError) as caught:
        read_settings(environment=variables, flags=flags)
    assert message in caught.value.message


@pytest.mark.parametrize(
    "name",
    [
        "FORESLICE_SERVICE_HOST",
        "FORESLICE_PORT",
        "FORESLICE_PORT_8080_TCP_ADDR",
        "FORESLICE_METRICS_SERVICE_PORT_HTTP",
        "FORESLICE_METRICS_PORT_8080_TCP",
    ],
)
def test_what_the_kubelet_sets_for_a_service_of_ours_is_no_setting(name: str) -> None:
    assert read_settings(environment={name: "tcp://10.0.0.1:8080"}) == DEFAULTS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "lease: {renewDeadline: 20s}", "must be shorter than lease.duration", id="deadline after duration"
        ),
        pytest.param("lease: {renewDeadline: 15s}", "must be shorter than lease.duration", id="deadline at duration"),
        pytest.param("lease: {retry: 10s}", "must be longer than 1.2 times", id="retry as long as the deadline"),
        pytest.param("lease: {retry: 8400ms}", "must be longer than 1.2 times", id="retry with jitter beyond it"),
        pytest.param(
            "lease: {retry: 5s, renewDeadline: 6s}", "must be longer than 1.2 times", id="jitter to the moment"
        ),
        pytest.param("lease: {duration: 15500ms}", "not a whole number of seconds", id="a duration no Lease can hold"),
        pytest.param("lease: {retry: 0s}", "lease.retry is 0s", id="no retry"),
        pytest.param(
            "loop: {resync: 3m}", "loop.stale (5m) must be at least twice loop.resync (3m)", id="rests too long"
        ),
        pytest.param("batch: {longest: 0s}", "batch.longest is 0s", id="zero"),
        pytest.param("periods: {catalog: 0s}", "periods.catalog is 0s", id="zero period"),
        pytest.param("sync: {aws: [us-east-1]}", "sync.directory does not say where", id="sync without a place"),
        pytest.param("batch: {idle: 20s}", "batch.idle is longer than batch.longest", id="quiet longer than all"),
    ],
)
def test_settings_that_contradict_each_other(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_settings(file(tmp_path, text), environment={})
    assert message in caught.value.message
    assert caught.value.next_step


def test_every_group_of_settings_can_be_given() -> None:
    assert [section.name for section in SECTIONS] == [group.name for group in fields(Settings)]


def test_every_setting_has_a_reason_and_names_of_its_own() -> None:
    settings = all_settings()
    assert all(setting.reason.endswith((".", "?")) for setting in settings)
    assert all(section.purpose.endswith(".") for section in SECTIONS)
    for names in ([s.key for s in settings], [s.flag for s in settings], [s.variable for s in settings]):
        assert len(set(names)) == len(settings)
