"""Which steps pass on moto, and which moto lacks; `instead` says what moto does.

docs/provider-checks.md shows both, so that a reader sees which beliefs about AWS only the project's own fake shares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.moto import steps
from tests.moto.account import MotoAccount


@dataclass(frozen=True, slots=True)
class Step:
    """A step, or one that moto lacks."""

    name: str
    run: Callable[[MotoAccount], None]
    instead: str = ""


SUPPORTED = (
    Step("launch by CreateFleet, on-demand: order, offering, tags", steps.fleet_on_demand),
    Step("launch of the first of several types", steps.fleet_of_several_types),
    Step("a zone with two subnets", steps.two_subnets_in_a_zone),
    Step("launch by CreateFleet, spot", steps.fleet_spot),
    Step("gang by RunInstances, in one subnet", steps.gang),
    Step("gang, spot", steps.gang_spot),
    Step("versions of a launch template, found again after a restart", steps.versions_are_found_again),
    Step("a fleet whose launch template a person deleted", steps.deleted_launch_template),
    Step("a gang whose launch template a person deleted", steps.deleted_launch_template_of_a_gang),
    Step("user data of AL2023", steps.user_data_al2023),
    Step("user data of Bottlerocket", steps.user_data_bottlerocket),
    Step("one network interface", steps.single_interface),
    Step("machines of others are not listed", steps.strangers_are_not_listed),
    Step("end an own machine, twice", steps.end_own),
    Step("a machine of others is not ended", steps.end_foreign),
    Step("an unknown machine is gone, the others of the call end", steps.end_unknown),
    Step("end a stopped machine", steps.end_stopped),
    Step("termination protection keeps one machine, the others end", steps.end_protected),
    Step("a node template that can be used", steps.verdicts),
    Step("a node template whose subnets are gone", steps.verdict_of_a_wrong_subnet),
    Step("`aws check`: cluster, subnets, groups, image, profile", steps.check_looks_at_templates),
    Step("`aws check`: launches by dry runs", steps.check_tries_permissions),
    Step("`aws trial`: all but tokens; nothing is left", steps.trial),
    Step("`aws check`: the queue", steps.check_queue),
    Step("`catalog sync`: types and zones", steps.catalog_types),
    Step("`catalog sync`: spot prices", steps.catalog_spot_prices),
    Step("notices of a queue", steps.queue_of_notices),
    Step("auto-scaling group by desired capacity: launch, repeat, describe, end", steps.group_by_size),
    Step("tags of a group that propagate make no machine ours", steps.group_tags_that_propagate),
    Step("a group with other words in our tag", steps.other_tags_of_other_groups),
)
LACKING = (
    Step(
        "volumes of a launch template: size, encryption", steps.volumes, "RunInstances starts with a volume of its own"
    ),
    Step("repeat a fleet with its token", steps.token_of_a_fleet, "CreateFleet ignores ClientToken and launches again"),
    Step(
        "repeat a gang with its token",
        steps.token_of_run_instances,
        "RunInstances ignores ClientToken and launches again",
    ),
    Step("refuse a fleet that names a type twice in a zone", steps.fleet_twice_in_a_zone, "CreateFleet launches"),
    Step(
        "EFA interfaces of each network card", steps.efa_interfaces, "does not keep the interfaces of a launch template"
    ),
    Step("reservations", steps.reservations, "no DescribeCapacityReservations"),
    Step("offers of Capacity Blocks", steps.blocks, "no DescribeCapacityBlockOfferings"),
    Step("launch into a block", steps.block_launch, "no Capacity Blocks"),
    Step("prices of the price list", steps.prices, "GetProducts has no server"),
    Step("`catalog sync`: list prices", steps.catalog_list_prices, "GetProducts has no server"),
    Step("`aws check`: quotas", steps.quotas, "no ListServiceQuotas"),
    Step("placement groups", steps.placement_group, "no CreatePlacementGroup"),
    Step("auto-scaling group by LaunchInstances", steps.launch_instances, "no LaunchInstances"),
)
