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
    """Names of the providers that may be asked; a pool with a node template of another one reports it."""

    catalog: Words = ()
    """Directories of catalog files that override the shipped ones, such as mounted ConfigMaps."""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class AwsSettings:
    """AWS, where cluster.providers names it."""

    region: str = ""
    """Region of the cluster. Empty: that of the environment (AWS_REGION) or of the profile."""

    profile: str = ""
    """Profile of ~/.aws/config. Empty: what the environment gives, in a pod its role."""

    prices: str = ""
    """Path of a YAML file with prices that replace list prices: your discounts."""

    queue: str = ""
    """URL of an SQS queue with EC2's notices. Empty: interruptions are found at the next reconcile, which is later."""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class GcpSettings:
    """Google Cloud, where cluster.providers names it."""

    project: str = ""
    """Id of the project that the machines are in. Empty: that of the environment (GOOGLE_CLOUD_PROJECT) or of the
    credentials, in a pod on GKE the cluster's."""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class LoopSettings:
    """The wait until the loop runs again without a change in the cluster."""

    resync: Duration = timedelta(minutes=1)
    """The longest time between two reconciles. Machines report nothing by themselves; a minute is short beside a boot.
    Each reconcile also looks for machines without an object."""

    retry: Duration = timedelta(seconds=5)
    """After a provider call whose outcome is unknown, or a launch that failed: the pods wait, so it is short."""

    stale: Duration = timedelta(minutes=5)
    """How long a kind of object may go without an event, a bookmark or a list before /readyz fails. At half of it the
    kind is listed again, whatever its watch says, and without that list nothing is launched or ended. An API server
    sends bookmarks every minute, so the default misses two before it lists."""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class BatchSettings:
    """The time in which changes are collected before a reconcile, as Karpenter's batch durations."""

    idle: Duration = timedelta(seconds=1)
    """Without any change for this long, the reconcile begins: pods of one Job arrive within milliseconds of each
    other."""

    longest: Duration = timedelta(seconds=10)
    """However many changes keep coming, the first one waits no longer than this."""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class SpendingSettings:
    """The limits of spending over all pools; each pool has its own limits besides."""

    max_usd_per_hour: Decimal | None = Field(default=None, ge=0)
    """$/h of all nodes that Foreslice owns, existing and new. None: only the pools' own limits count."""

    max_usd_per_day: Decimal | None = Field(default=None, ge=0)
    """$ of all nodes that Foreslice owns on one day (UTC). Nothing is launched that would exceed it by midnight.
    None: no bound."""

    max_launches_per_hour: int | None = Field(default=None, ge=0)
    """Nodes launched per hour, with a burst of as many. None: no bound. A bound stops launch loops."""

    buy_unpriced: bool = False
    """Whether types without a price may be bought, counted as 0 $/h. False: an unknown price is an unknown risk."""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class WorkSettings:
    """The work that a plan may spend on selectors and searches, in units of CEL's cost: five million take a second."""

    per_round: Count = _WORK.per_round
    """For looking at nodes and for usual selectors, in equal shares for namespaces and for the kinds of pods in each.
    Thousands of different pods that fit nowhere then delay others by about two seconds."""

    selectors_per_round: Count = _WORK.selectors_per_round
    """For expensive selectors and searches, in equal shares for namespaces. Kubernetes lets a selector cost a million
    for each device; with this, 20 such pods delay others by less than a second."""

    per_pod: Count = _WORK.per_pod
    """For one pod and its equals: half of selectorsPerRound, so that one of them cannot take all there is."""

    hints_per_round: Count = _WORK.hints_per_round
    """To find which type would fit if a pool admitted it. No decision depends on it."""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class DriftSettings:
    """The reaction if a node publishes other devices than predicted. Drift is always reported."""

    policy: DriftPolicy = DriftPolicy.MATTERS
    """When the type is quarantined with its drivers: Matters where the claims it was bought for are decided otherwise.
    A driver's patch version is no reason to stop launching, as Always would."""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class PeriodSettings:
    """The periods at which sources without notifications are read."""

    catalog: Duration = timedelta(minutes=5)
    """Time between two readings of the catalog's directories. A mounted ConfigMap follows its object within two
    minutes."""

    prices: Duration = timedelta(minutes=15)
    """Time between two readings of the providers' prices (kwok has none). Spot prices change by the hour."""

    block_clock: Duration = timedelta(seconds=30)
    """Time between two checks of the wall clock. Somebody may set it while the loop waits, and a block ends on time."""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class SyncSettings:
    """Clouds' listings that the controller imports into the catalog: `foreslice catalog sync`, on a timer."""

    aws: Words = ()
    """Regions to list. None, the default, lists nothing and needs no permission."""

    gcp: Words = ()
    """Projects to list."""

    every: Duration = timedelta(hours=24)
    """Time between two listings, each some hundred calls. What clouds sell changes by the week, list prices by the
    month."""

    directory: str = ""
    """Where the listings are kept, as catalog files below those of cluster.catalog. It must be writable; in a pod an
    emptyDir will do, since all is listed again after a move."""

    spot: bool = False
    """Whether AWS's spot prices are imported as well. They change by the hour, and those of yesterday mislead."""

    gcp_prices: str = ""
    """Path of a file with Google's prices, instead of sums of what the billing catalogue lists apart."""

    @property
    def lists(self) -> bool:
        """True if any cloud is listed."""
        return bool(self.aws or self.gcp)


@dataclass(frozen=True, slots=True, config=_CONFIG)
class LeaseSettings:
    """The Lease that elects which replica acts. Names and defaults are those of Kubernetes' own components."""

    elect: bool = True
    """Whether to elect at all. Off only for a single process that nothing replaces, such as one on a laptop."""

    name: str = "foreslice"
    """Name of the Lease."""

    namespace: str = "foreslice-system"
    """Namespace of the Lease: where Foreslice is installed."""

    duration: Duration = timedelta(seconds=15)
    """How long a replica must have seen no renewal before it takes over. Whole seconds, longer than renewDeadline."""

    renew_deadline: Duration = timedelta(seconds=10)
    """How long after it began its last renewal the leader may act. Shorter than the duration by more than clocks drift,
    and longer than 1.2 times retry."""

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
    """The status page and /explain. Only `kubectl port-forward` reaches it: tokens do not cross a network in clear."""

    external_grpc: str = OFF
    """Cluster Autoscaler's cloud provider externalgrpc, for pools with launcher ClusterAutoscaler. Calls rent machines
    and end them: section grpc says who may call. Needs the extra `foreslice[grpc]`."""

    grpc_expander: str = OFF
    """Cluster Autoscaler's expander grpc, which chooses among node groups. It changes nothing, and its client has no
    certificate: TLS without client certificates, at an address of its own."""

    liveness: Duration = timedelta(minutes=5)
    """The longest that one reconcile may take before /healthz fails and the kubelet restarts the process."""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class GrpcSettings:
    """The requirements of serve.externalGrpc and serve.grpcExpander. Files are read again when they change."""

    certificate: str = ""
    """Path of the server's certificate (PEM), for the host name in Cluster Autoscaler's `address`. Required unless the
    address is a loopback address or `insecure` says otherwise."""

    key: str = ""
    """Path of its private key (PEM)."""

    client_ca: str = ""
    """Path of the CA (PEM) that signs Cluster Autoscaler's certificate: who has none cannot call. Required likewise."""

    insecure: bool = False
    """Whether anybody who reaches the address may rent machines: no certificates. Only where nobody else reaches it."""

    resource_slices: bool = False
    """Whether templates have predicted ResourceSlices, in field 3 (kubernetes/autoscaler pull request 10303). Releases
    without it ignore the field; false until one has it."""

    exemplars: bool = False
    """Whether a Cluster Autoscaler without that field is shown a Node of no machine, with its slices, for some seconds:
    one for each group without a node that it asks about. Others see these Nodes, too (docs/cluster-autoscaler.md)."""

    groups: Count = 50
    """How many node groups are listed. Cluster Autoscaler asks for each of them in every loop, and packs pods into
    each; those with nodes are always listed."""


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
    """Info logs each decision once; debug also logs what libraries say."""

    format: LogFormat = LogFormat.AUTO
    """Auto writes for people on a terminal, and otherwise one JSON object a line."""


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
