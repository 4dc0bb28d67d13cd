"""Settings: one dataclass for each concern, every field with unit, default and the reason for it.

settings/load.py reads them from a file, the environment and flags, and makes docs/settings.md and --help out of the
texts below: a field added here is a setting of all three. Spans of time are timedeltas, written like 500ms or 1h30m.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum

from autoscaler.dra.drift import DriftPolicy
from autoscaler.planning.policy import Policy, WorkLimits

OFF = "off"


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """The cluster, and what is assumed of it."""

    name: str = ""
    """Shown on the status page, in logs and in traces, for people with several clusters. Nothing depends on it."""

    kubeconfig: str = ""
    """Path. Empty: in a pod its service account, elsewhere as kubectl."""

    context: str = ""
    """Context of the kubeconfig. Empty: the current one."""

    feature_gates: str = ""
    """Gates that the API server does not tell, as given to it: DRAListTypeAttributes=true,GenericWorkload=true."""

    providers: tuple[str, ...] = ("kwok",)
    """Names of the providers that may be asked; a pool with a node template of another one reports it."""

    catalog: tuple[str, ...] = ()
    """Directories of catalog files that lie over the shipped ones, such as mounted ConfigMaps."""


@dataclass(frozen=True, slots=True)
class AwsSettings:
    """AWS, where cluster.providers names it."""

    region: str = ""
    """Region of the cluster. Empty: that of the environment (AWS_REGION) or of the profile."""

    profile: str = ""
    """Profile of ~/.aws/config. Empty: what the environment gives, in a pod its role."""

    prices: str = ""
    """Path of a YAML file with prices that lie over the list's: discounts that only the customer knows."""

    queue: str = ""
    """URL of an SQS queue with EC2's notices. Empty: what happens is seen at the next look, which is slower."""


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """When the loop looks again without being woken."""

    resync: timedelta = timedelta(minutes=1)
    """The longest rest between two rounds. Machines report nothing by themselves; a minute is short beside a boot.
    Each round also looks for machines without an object."""

    retry: timedelta = timedelta(seconds=5)
    """After a provider call whose outcome is unknown, or a launch that failed: the pods wait, so it is short."""

    stale: timedelta = timedelta(minutes=5)
    """How long a kind of object may go without an event, a bookmark or a list before /readyz fails. At half of it the
    kind is listed again, whatever its watch says, and without that list nothing is launched or ended. An API server
    sends bookmarks every minute, so the default misses two before it lists."""


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """How long changes are gathered before a tick looks at them, as Karpenter's batch durations."""

    idle: timedelta = timedelta(seconds=1)
    """Without any change for this long, the tick begins: pods of one Job arrive within milliseconds of each other."""

    longest: timedelta = timedelta(seconds=10)
    """However many changes keep coming, the first one waits no longer than this."""


@dataclass(frozen=True, slots=True)
class DriftSettings:
    """What follows when a node publishes something else than was predicted. It is told in any case."""

    policy: DriftPolicy = DriftPolicy.MATTERS
    """When the type is quarantined with its drivers: Matters where the claims it was bought for are decided otherwise.
    A driver's patch version matters to nobody, and Always would stop a fleet for it."""


@dataclass(frozen=True, slots=True)
class PeriodSettings:
    """How often what nobody announces is looked at."""

    catalog: timedelta = timedelta(minutes=5)
    """Between two readings of the catalog's directories. A mounted ConfigMap follows its object within two minutes."""

    prices: timedelta = timedelta(minutes=15)
    """Between two readings of what providers ask for (not kwok's). Spot prices move by the hour."""

    block_clock: timedelta = timedelta(seconds=30)
    """Between two looks at the wall clock, which may be set while the loop rests; the end of a block does not wait."""


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """What clouds list, taken over into the catalog while the controller runs: `foreslice catalog sync`, on a timer."""

    aws: tuple[str, ...] = ()
    """Regions to list. None, the default, lists nothing and needs no permission."""

    gcp: tuple[str, ...] = ()
    """Projects to list."""

    every: timedelta = timedelta(hours=24)
    """Between two listings, each some hundred calls. What clouds sell changes by the week, list prices by the month."""

    directory: str = ""
    """Where the listings are kept, as catalog files below those of cluster.catalog. It must be writable; in a pod an
    emptyDir will do, since all is listed again after a move."""

    spot: bool = False
    """Whether AWS's spot prices are taken as well: they change by the hour, and a catalog of yesterday's misleads."""

    gcp_prices: str = ""
    """Path of a file with Google's prices, instead of sums of what the billing catalogue lists apart."""


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """The Lease that elects which replica acts. Names and defaults are those of Kubernetes' own components."""

    elect: bool = True
    """Whether to elect at all. Off only for a single process that nothing replaces, such as one on a laptop."""

    name: str = "foreslice"
    """Name of the Lease."""

    namespace: str = "foreslice-system"
    """Namespace of the Lease: where Foreslice is installed."""

    duration: timedelta = timedelta(seconds=15)
    """How long a replica must have seen no renewal before it takes over. Whole seconds, longer than renewDeadline."""

    renew_deadline: timedelta = timedelta(seconds=10)
    """How long after it began its last renewal the leader may act. Shorter than the duration by more than clocks drift,
    and longer than 1.2 times retry."""

    retry: timedelta = timedelta(seconds=2)
    """Between two attempts to acquire or renew."""


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """Where the process answers, as host:port; an empty host is all addresses, port 0 any free one, `off` nothing."""

    metrics_address: str = ":8080"
    """/metrics for Prometheus."""

    health_address: str = ":8081"
    """/healthz and /readyz for the kubelet, apart from the metrics so that a NetworkPolicy can tell them apart."""

    page_address: str = "127.0.0.1:8082"
    """The status page and /explain. Only `kubectl port-forward` reaches it: tokens do not cross a network in clear."""

    liveness: timedelta = timedelta(minutes=5)
    """The longest that one round may take before /healthz fails and the kubelet restarts the process."""


class LogFormat(Enum):
    """How a line of the log looks."""

    AUTO = "auto"  # console on a terminal, else JSON
    JSON = "json"
    CONSOLE = "console"


class LogLevel(Enum):
    """What is worth a line."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The log, on standard error."""

    level: LogLevel = LogLevel.INFO
    """Info tells each decision once; debug also what libraries say."""

    format: LogFormat = LogFormat.AUTO
    """Auto writes for people on a terminal, and otherwise one JSON object a line."""


@dataclass(frozen=True, slots=True)
class TracingSettings:
    """OpenTelemetry traces of the loop's rounds."""

    endpoint: str = OFF
    """URL of an OTLP collector over HTTP, http://collector:4318/v1/traces. Needs the extra `foreslice[tracing]`."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything an operator may turn. Of the policy only spending guards and bounds of work are read from outside."""

    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    aws: AwsSettings = field(default_factory=AwsSettings)
    loop: LoopSettings = field(default_factory=LoopSettings)
    batch: BatchSettings = field(default_factory=BatchSettings)
    policy: Policy = field(default_factory=Policy)
    work: WorkLimits = field(default_factory=WorkLimits)
    drift: DriftSettings = field(default_factory=DriftSettings)
    periods: PeriodSettings = field(default_factory=PeriodSettings)
    sync: SyncSettings = field(default_factory=SyncSettings)
    lease: LeaseSettings = field(default_factory=LeaseSettings)
    serve: ServeSettings = field(default_factory=ServeSettings)
    log: LogSettings = field(default_factory=LogSettings)
    tracing: TracingSettings = field(default_factory=TracingSettings)


DEFAULTS = Settings()
