"""Settings: one dataclass for each concern, every field with unit, default and the reason for it.

A field added here is a setting in the file, in the environment and as a flag; --help and docs/settings.md print the
text below it. Durations are timedeltas, written like 500ms or 1h30m.
"""

from __future__ import annotations

from dataclasses import field
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from autoscaler.dra.drift import DriftPolicy
from autoscaler.planning.policy import Policy, WorkLimits
from autoscaler.settings.spans import span
from instance_catalog.dataclass import fields

OFF = "off"
_CONFIG: Final = ConfigDict(use_attribute_docstrings=True, extra="forbid")
_WORK: Final = WorkLimits()


def _words(value: object) -> object:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


Duration = Annotated[timedelta, BeforeValidator(span)]
Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
Count = Annotated[int, Field(ge=1)]


@dataclass(frozen=True, slots=True, config=_CONFIG)
class ClusterSettings:
    """The cluster, and assumptions about it."""

    name: str = ""
    """Shown on the status page, in logs and in traces, for people with several clusters. Nothing depends on it."""

    kubeconfig: str = ""
    """Path. Empty: in a pod its service account, elsewhere as kubectl."""

    context: str = ""
    """Context of the kubeconfig. Empty: the current one."""

    feature_gates: str = ""
    """Feature gates that the API server does not report: DRAListTypeAttributes=true,GenericWorkload=true."""

    providers: Words = ("kwok",)
    """Names of the providers that may be used; a pool whose node template belongs to another provider reports this."""

    catalog: Words = ()
    """Directories of catalog files that override the shipped ones, such as mounted ConfigMaps."""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class AwsSettings:
    """AWS, where cluster.providers names it."""

    region: str = ""
    """Region of the cluster. Empty: that of the environment (AWS_REGION) or of the profile."""

    profile: str = ""
    """Profile of ~/.aws/config. Empty: the credentials of the environment; in a pod, those of its role."""

    prices: str = ""
    """Path of a YAML file with prices that replace list prices: your discounts."""

    queue: str = ""
    """URL of an SQS queue with EC2's interruption notices. Empty: the next reconcile finds interruptions, which is
    later."""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class GcpSettings:
    """Google Cloud, where cluster.providers names it."""

    project: str = ""
    """Id of the project with the machines. Empty: the project of the environment (GOOGLE_CLOUD_PROJECT) or of the
    credentials; in a pod on GKE, that of the cluster."""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class LoopSettings:
    """The wait until the loop runs again without a change in the cluster."""

    resync: Duration = timedelta(minutes=1)
    """The longest time between two reconciles. Machines send no events, and a minute is short compared with the time
    that a machine needs to boot. Each reconcile also looks for machines without an object."""

    retry: Duration = timedelta(seconds=5)
    """Time until the next reconcile after a provider call whose outcome is unknown, or after a failed launch. It is
    short because pods wait."""

    stale: Duration = timedelta(minutes=5)
    """How long a kind of object may have no event, bookmark or list before /readyz fails. After half of this time, the
    kind is listed again, even if its watch seems to work; if the list fails, nothing is launched or terminated. An API
    server sends bookmarks every minute, so the default misses two before it lists."""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class BatchSettings:
    """The time in which changes are collected before a reconcile, as Karpenter's batch durations."""

    idle: Duration = timedelta(seconds=1)
    """The reconcile begins when nothing has changed for this time. The pods of one Job arrive within milliseconds."""

    longest: Duration = timedelta(seconds=10)
    """The longest time that a change waits for the reconcile while other changes follow."""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class SpendingSettings:
    """The limits of spending over all pools; each pool has its own limits besides."""

    max_usd_per_hour: Decimal | None = Field(default=None, ge=0)
    """$/h of all nodes that Foreslice owns, existing and new. None: only the pools' own limits count."""

    max_usd_per_day: Decimal | None = Field(default=None, ge=0)
    """$ of all nodes that Foreslice owns on one day (UTC). A launch that would exceed it before midnight is not made.
    None: no limit."""

    max_launches_per_hour: int | None = Field(default=None, ge=0)
    """Nodes launched per hour; all of them may be launched at once. None: no limit. A limit stops launch loops."""

    buy_unpriced: bool = False
    """Whether types without a price may be bought, counted as 0 $/h. False: an unknown price is an unknown risk."""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class WorkSettings:
    """The work that a plan may spend on selectors and searches, in units of CEL's cost: five million take a second."""

    per_round: Count = _WORK.per_round
    """Work for checking nodes and for usual selectors, in equal shares for namespaces and, in each namespace, for kinds
    of pods. With the default, thousands of different pods that fit nowhere delay others by about two seconds."""

    selectors_per_round: Count = _WORK.selectors_per_round
    """Work for expensive selectors and searches, in equal shares for namespaces. Kubernetes allows a cost of a million
    for a selector and a device; with the default, 20 such pods delay others by less than a second."""

    per_pod: Count = _WORK.per_pod
    """Work for one pod and for pods that are equal to it. The default is half of selectorsPerRound, so one kind of pod
    cannot use all of it."""

    hints_per_round: Count = _WORK.hints_per_round
    """Work to find types that would fit if a pool admitted them. It is used only for hints; no decision depends on
    it."""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class DriftSettings:
    """The reaction if a node publishes other devices than predicted. Drift is always reported."""

    policy: DriftPolicy = DriftPolicy.MATTERS
    """When the instance type is quarantined with its drivers. Matters: if the drift changes the decision for a claim
    that the node was bought for. Always: after any drift, even of a driver's patch version."""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class PeriodSettings:
    """The periods at which sources without notifications are read."""

    catalog: Duration = timedelta(minutes=5)
    """Time between two readings of the catalog's directories. A mounted ConfigMap follows its object within two
    minutes."""

    prices: Duration = timedelta(minutes=15)
    """Time between two readings of the providers' prices (kwok has none). Spot prices change by the hour."""

    block_clock: Duration = timedelta(seconds=30)
    """Time between two checks of the wall clock. Somebody may change the clock while the loop waits, and the end of a
    block does not move."""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class SyncSettings:
    """Clouds' listings that the controller imports into the catalog: `foreslice catalog sync`, on a timer."""

    aws: Words = ()
    """Regions to list. Empty, the default: nothing is listed, and no permission is needed."""

    gcp: Words = ()
    """Projects to list."""

    every: Duration = timedelta(hours=24)
    """Time between two listings, each some hundred calls. The types on sale change every few weeks, list prices every
    few months."""

    directory: str = ""
    """Where the listings are kept, as catalog files below those of cluster.catalog. It must be writable. In a pod, an
    emptyDir is enough: a new pod lists everything again."""

    spot: bool = False
    """Whether AWS's spot prices are imported as well. They change every hour, and old ones are misleading."""

    gcp_prices: str = ""
    """Path of a file with Google's prices. Empty: they are computed from the prices of parts in the billing
    catalogue."""

    @property
    def lists(self) -> bool:
        """True if any cloud is listed."""
        return bool(self.aws or self.gcp)


@dataclass(frozen=True, slots=True, config=_CONFIG)
class LeaseSettings:
    """The Lease that elects which replica acts. Names and defaults are those of Kubernetes' own components."""

    elect: bool = True
    """Whether to elect a leader. Turn it off only for a single process, such as one on a laptop."""

    name: str = "foreslice"
    """Name of the Lease."""

    namespace: str = "foreslice-system"
    """Namespace of the Lease: where Foreslice is installed."""

    duration: Duration = timedelta(seconds=15)
    """How long a replica must have seen no renewal before it takes over. Whole seconds, longer than renewDeadline."""

    renew_deadline: Duration = timedelta(seconds=10)
    """How long the leader may act after the start of its last renewal. It must be shorter than the duration by more
    than the drift of clocks, and longer than 1.2 times retry."""

    retry: Duration = timedelta(seconds=2)
    """Time between two attempts to acquire or renew."""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class ServeSettings:
    """The addresses of the process, as host:port; an empty host is all addresses, port 0 any free one, `off` none."""

    metrics_address: str = ":8080"
    """/metrics for Prometheus."""

    health_address: str = ":8081"
    """/healthz and /readyz for the kubelet, apart from the metrics so that a NetworkPolicy can distinguish them."""

    page_address: str = "127.0.0.1:8082"
    """The status page and /explain. Only `kubectl port-forward` reaches it, so tokens do not cross a network
    unencrypted."""

    external_grpc: str = OFF
    """Cluster Autoscaler's cloud provider externalgrpc, for pools with launcher ClusterAutoscaler. Callers can launch
    and terminate machines; section grpc says who may call. Needs the extra `foreslice[grpc]`."""

    grpc_expander: str = OFF
    """Cluster Autoscaler's expander grpc, which chooses among node groups. It changes nothing, and its client has no
    certificate, so it uses TLS without client certificates and needs a separate address."""

    liveness: Duration = timedelta(minutes=5)
    """The longest that one reconcile may take before /healthz fails and the kubelet restarts the process."""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class GrpcSettings:
    """The requirements of serve.externalGrpc and serve.grpcExpander. Files are read again when they change."""

    certificate: str = ""
    """Path of the server's certificate (PEM), for the host name in Cluster Autoscaler's `address`. Required unless the
    address is a loopback address or `insecure` is set."""

    key: str = ""
    """Path of its private key (PEM)."""

    client_ca: str = ""
    """Path of the CA (PEM) that signs Cluster Autoscaler's certificate. Clients without such a certificate are refused.
    Required like the server's certificate."""

    insecure: bool = False
    """Whether to serve without certificates. Then every process that reaches the address can launch and terminate
    machines; set it only if no other process does."""

    resource_slices: bool = False
    """Whether templates have predicted ResourceSlices, in field 3 (kubernetes/autoscaler pull request 10303). Releases
    without it ignore the field. The default stays false until a release has it."""

    exemplars: bool = False
    """Whether to create, for a Cluster Autoscaler without that field, a Node without a machine, with its slices, for
    some seconds: one for each group that it asks about and that has no node. Others see these Nodes as well
    (docs/cluster-autoscaler.md)."""

    groups: Count = 50
    """The most node groups to list. Cluster Autoscaler requests each of them in every loop and packs pods into each.
    Groups with nodes are always listed."""


class LogFormat(Enum):
    """The form of a line of the log."""

    AUTO = "auto"  # console on a terminal, else JSON
    JSON = "json"
    CONSOLE = "console"


class LogLevel(Enum):
    """The least severe events that are logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, config=_CONFIG)
class LogSettings:
    """The log, on standard error."""

    level: LogLevel = LogLevel.INFO
    """Info logs each decision once; debug also logs messages of libraries."""

    format: LogFormat = LogFormat.AUTO
    """Auto writes readable text to a terminal, and otherwise one JSON object per line."""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class TracingSettings:
    """OpenTelemetry traces of the loop's reconciles."""

    endpoint: str = OFF
    """URL of an OTLP collector over HTTP, http://collector:4318/v1/traces. Needs the extra `foreslice[tracing]`."""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class Settings:
    """Everything an operator may set."""

    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    aws: AwsSettings = field(default_factory=AwsSettings)
    gcp: GcpSettings = field(default_factory=GcpSettings)
    loop: LoopSettings = field(default_factory=LoopSettings)
    batch: BatchSettings = field(default_factory=BatchSettings)
    spending: SpendingSettings = field(default_factory=SpendingSettings)
    work: WorkSettings = field(default_factory=WorkSettings)
    drift: DriftSettings = field(default_factory=DriftSettings)
    periods: PeriodSettings = field(default_factory=PeriodSettings)
    sync: SyncSettings = field(default_factory=SyncSettings)
    lease: LeaseSettings = field(default_factory=LeaseSettings)
    serve: ServeSettings = field(default_factory=ServeSettings)
    grpc: GrpcSettings = field(default_factory=GrpcSettings)
    log: LogSettings = field(default_factory=LogSettings)
    tracing: TracingSettings = field(default_factory=TracingSettings)

    @property
    def policy(self) -> Policy:
        """The limits of the planner. Only spending guards and bounds of work are settings."""
        return Policy(**_values(self.spending), work=WorkLimits(**_values(self.work)))


def _values(section: SpendingSettings | WorkSettings) -> dict[str, Any]:
    return {found.name: getattr(section, found.name) for found in fields(section)}


DEFAULTS = Settings()
