"""Builds the machines of the kwok provider: the predicted node and slices, with the labels and annotations of the
pool's template."""

from __future__ import annotations

from autoscaler.cluster.resources import KWOK_NODE_TEMPLATES
from autoscaler.execution.machine import machine_of
from autoscaler.kube.custom.node_template import KwokNodeTemplateSpec, parse_kwok_node_template
from autoscaler.kube.custom.schema import duration
from autoscaler.kube.problem import Problems
from autoscaler.kube.writing.objects import write_node
from autoscaler.kube.writing.slices import slice_manifest
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.prediction.concrete import make_concrete
from instance_catalog.types.catalog import Catalog
from providers.abilities import KubernetesObjects
from providers.contract import LaunchRequest, OfferingKey, TemplateRef
from providers.errors import TemplateError
from providers.kwok.provider import MachineManifests

_TEMPLATES = (KWOK_NODE_TEMPLATES.api_version, KWOK_NODE_TEMPLATES.plural)


class KwokMachines:
    """Machines as the catalog predicts them for a Kubernetes version."""

    def __init__(self, objects: KubernetesObjects, catalog: Catalog, profile: KubernetesProfile) -> None:
        self._objects = objects
        self._catalog = catalog
        self._profile = profile

    def manifests(self, request: LaunchRequest, offering: OfferingKey) -> tuple[MachineManifests, ...]:
        """Nodes that are not ready yet, and all slices of their drivers with made-up runtime values."""
        template = self._template(request.template)
        return tuple(self._machine(request, offering, name, template) for name in request.nodes)

    def _machine(
        self, request: LaunchRequest, offering: OfferingKey, name: str, template: KwokNodeTemplateSpec
    ) -> MachineManifests:
        predicted = machine_of(request, offering, name, catalog=self._catalog, profile=self._profile)
        node = replace(
            predicted.node,
            # What the pool says was planned with, so it wins.
            labels=FrozenMap(template.labels).with_items(predicted.node.labels),
            annotations=FrozenMap(template.annotations),
            ready=False,
        )
        slices = make_concrete(predicted.slices, node_name=name, seed=request.token)
        return MachineManifests(write_node(node), tuple(slice_manifest(slice_) for slice_ in slices))

    def _template(self, reference: TemplateRef) -> KwokNodeTemplateSpec:
        if not reference.name:
            return KwokNodeTemplateSpec()
        found = self._objects.get(_TEMPLATES, reference.name)
        if found is None:
            step = "create it, or correct spec.nodeTemplateRef of the pool"
            raise TemplateError(f"there is no KwokNodeTemplate {reference.name}", next_step=step)
        problems = Problems()
        spec = parse_kwok_node_template(dict(found), problems)
        if spec is None:
            raise TemplateError(f"KwokNodeTemplate {reference.name}: {'; '.join(str(one) for one in problems)}")
        # Planning does not read templates, so what would change where pods fit cannot be honoured here.
        if spec.taints:
            raise TemplateError(
                f"KwokNodeTemplate {reference.name}: move spec.taints to the pool, where plans see them"
            )
        if duration(spec.publish):
            raise TemplateError(f"KwokNodeTemplate {reference.name}: spec.publish must be 0s, delays are not supported")
        return spec
