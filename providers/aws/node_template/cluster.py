"""The cluster that machines join: EKS is asked once for the properties that the template omits."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from instance_catalog.dataclass import replace
from providers.aws.errors import translated
from providers.aws.node_template.template import Cluster
from providers.aws.session import Aws
from providers.contract import Clock
from providers.ttl_cache import TtlCache

# An endpoint changes only if the cluster is created again.
_LIFETIME: Final = timedelta(hours=1)


class Clusters:
    """Completes the cluster fields of templates."""

    def __init__(self, aws: Aws, clock: Clock) -> None:
        self._aws = aws
        self._known: TtlCache[Cluster] = TtlCache(clock, _LIFETIME)

    def joined(self, cluster: Cluster) -> Cluster:
        """The cluster with endpoint, certificate authority and service network. Raises TemplateError when unknown."""
        if cluster.endpoint and cluster.certificate_authority and cluster.service_cidr:
            return cluster
        found = self._known.get(cluster.name, lambda: self._read(cluster.name))
        return replace(
            cluster,
            endpoint=cluster.endpoint or found.endpoint,
            certificate_authority=cluster.certificate_authority or found.certificate_authority,
            service_cidr=cluster.service_cidr or found.service_cidr,
        )

    def _read(self, name: str) -> Cluster:
        with translated(f"DescribeCluster {name}"):
            found = self._aws.eks.describe_cluster(name=name)["cluster"]
        network = found.get("kubernetesNetworkConfig", {})
        families = ("serviceIpv6Cidr", "serviceIpv4Cidr")
        order = families if network.get("ipFamily") == "ipv6" else tuple(reversed(families))
        return Cluster(
            name=name,
            endpoint=found.get("endpoint", ""),
            certificate_authority=found.get("certificateAuthority", {}).get("data", ""),
            service_cidr=next((network[name] for name in order if network.get(name)), ""),
        )
