"""A closed set is a Literal in the schema and an enum in the model: both have the same values."""

from __future__ import annotations

from enum import Enum
from typing import Any, get_args

import pytest

from autoscaler.kube.custom.capacity_block import BlockPhaseName, CapacityBlockSpec, DrainSpec, UnknownDuration
from autoscaler.kube.custom.capacity_pool import CapacityPoolSpec, DisruptionSpec, ScopeSpec
from autoscaler.kube.custom.launch_batch import LaunchBatchStatus
from autoscaler.kube.custom.provisioned_node import PhaseName
from autoscaler.kube.custom.schema import ApiModel, CapacityTypeName
from autoscaler.lifecycle.capacity_block import BlockPhase
from autoscaler.model.capacity import (
    AtDeadline,
    ConsolidationPolicy,
    DeletionPolicy,
    DriftDisruption,
    Hold,
    Launcher,
    Mode,
    Permission,
    PodScope,
    StoppedMachines,
    UnknownDurationPolicy,
)
from autoscaler.model.provisioned_node import BatchOutcome, Phase
from instance_catalog.types.instance_type import CapacityType


@pytest.mark.parametrize(
    ("names", "members"),
    [(PhaseName, Phase), (BlockPhaseName, BlockPhase), (CapacityTypeName, CapacityType)],
    ids=["phases of nodes", "phases of blocks", "capacity types"],
)
def test_the_schema_knows_every_member(names: Any, members: type[Enum]) -> None:
    assert set(get_args(names)) == {member.value for member in members}


@pytest.mark.parametrize(
    ("model", "field", "members"),
    [
        (CapacityPoolSpec, "mode", Mode),
        (CapacityPoolSpec, "overflow", Permission),
        (CapacityPoolSpec, "fractional", Permission),
        (CapacityPoolSpec, "deletion_policy", DeletionPolicy),
        (CapacityPoolSpec, "launcher", Launcher),
        (ScopeSpec, "pods", PodScope),
        (DisruptionSpec, "consolidate", ConsolidationPolicy),
        (DisruptionSpec, "drift", DriftDisruption),
        (DisruptionSpec, "stopped", StoppedMachines),
        (CapacityBlockSpec, "hold", Hold),
        (CapacityBlockSpec, "deletion_policy", DeletionPolicy),
        (DrainSpec, "at_deadline", AtDeadline),
        (UnknownDuration, "policy", UnknownDurationPolicy),
        (LaunchBatchStatus, "outcome", BatchOutcome),
    ],
)
def test_a_field_admits_every_member_and_nothing_else(model: type[ApiModel], field: str, members: type[Enum]) -> None:
    assert set(get_args(model.model_fields[field].annotation)) == {member.value for member in members}
