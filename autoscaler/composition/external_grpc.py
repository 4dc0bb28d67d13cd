"""Cluster Autoscaler's gRPC services, as the settings ask for them. grpcio is imported only if they do."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import structlog

from autoscaler.cluster.api import KubernetesApi
from autoscaler.errors import ConfigurationError
from autoscaler.externalgrpc.exemplars import Exemplars
from autoscaler.externalgrpc.expander import Expander
from autoscaler.externalgrpc.node_groups import Launchable, launchable_of
from autoscaler.externalgrpc.service import CloudProvider
from autoscaler.loop.loop import Tick
from autoscaler.serve.recorder import Recorder
from autoscaler.settings.settings import OFF, Settings
from instance_catalog.dataclass import dataclass, field
from providers.contract import Clock

if TYPE_CHECKING:
    from autoscaler.externalgrpc.server import GrpcServer

_OFTEN: Final = 1.0  # seconds between two looks at what is due; a loop of Cluster Autoscaler takes ten
_AFTER_TROUBLE: Final = 10.0
_PATIENCE: Final = 10.0
_LOG: Final = structlog.get_logger("foreslice.externalgrpc")


@dataclass(slots=True)
class ExternalGrpc:
    """The services with their servers. They answer from the first reconcile of this replica on."""

    provider: CloudProvider
    settings: Settings
    exemplars: Exemplars | None = None
    servers: tuple[GrpcServer, ...] = ()
    launchable: Launchable | None = None
    worker: threading.Thread | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    def observed(self, tick: Tick) -> None:
        """A reconcile succeeded. What can be launched is worked out here, in the thread that plans, because planning
        shares caches. A bug there must not end what the loop does for other pools."""
        if tick.catalog is None:
            return
        policy, most = self.settings.policy, self.settings.grpc.groups
        try:
            launchable = launchable_of(tick.snapshot, tick.catalog, policy, tick.now, most=most, batches=tick.batches)
        except Exception as error:  # noqa: BLE001  # the last launchable stays, and the log has the traceback
            _LOG.error("unexpected_error", kind="node groups", exc_info=error)
            return
        self.launchable = launchable
        self.provider.update(launchable)
        for server in self.servers:
            server.start()
        if self.exemplars is not None and self.worker is None:
            self.worker = threading.Thread(target=self._work, args=(self.exemplars,), name="exemplars", daemon=True)
            self.worker.start()

    def _work(self, exemplars: Exemplars) -> None:
        done = True
        while not self.ended.wait(_OFTEN if done else _AFTER_TROUBLE):
            try:
                done = exemplars.work()
            except Exception as error:  # noqa: BLE001  # they are tried again, and the log has the traceback
                _LOG.error("unexpected_error", kind="exemplars", exc_info=error)
                done = False

    def stop(self) -> None:
        """Finish the calls under way. Exemplars end before the Lease is given up."""
        for server in self.servers:
            server.stop()
        self.ended.set()
        if self.exemplars is not None and self.worker is not None:
            self.worker.join(_PATIENCE)
            self.exemplars.close()


def external_grpc_of(settings: Settings, api: KubernetesApi, recorder: Recorder, clock: Clock) -> ExternalGrpc | None:
    """The services that the settings ask for; None for none. `api` refuses writes of a replica that does not lead.

    Raises ConfigurationError for addresses without certificates, ModuleNotFoundError without grpcio.
    """
    serve, options = settings.serve, settings.grpc
    if OFF == serve.external_grpc == serve.grpc_expander:
        return None
    from autoscaler.externalgrpc.server import Certificates, GrpcServer, credentials_of

    files = Certificates(options.certificate, options.key, options.client_ca)
    if options.exemplars and options.resource_slices:
        raise ConfigurationError(
            "grpc.exemplars and grpc.resourceSlices are both on: one is for Cluster Autoscalers without the other",
            next_step="turn grpc.exemplars off if Cluster Autoscaler has field 3, else grpc.resourceSlices",
        )
    exemplars = Exemplars(api, clock) if options.exemplars and serve.external_grpc != OFF else None
    provider = CloudProvider(
        api,
        lambda: uuid4().hex[:10],
        slices=options.resource_slices,
        most=options.groups,
        exemplars=exemplars,
    )
    made = ExternalGrpc(provider, settings, exemplars)
    servers: list[GrpcServer] = []
    if serve.external_grpc != OFF:
        credentials = credentials_of(serve.external_grpc, files, insecure=options.insecure, mutual=True)
        servers.append(GrpcServer.of_provider(provider.call, serve.external_grpc, credentials, recorder.grpc_answered))
    if serve.grpc_expander != OFF:
        credentials = credentials_of(serve.grpc_expander, files, insecure=options.insecure, mutual=False)
        expander = Expander(lambda: made.launchable, recorder.option_chosen)
        servers.append(GrpcServer.of_expander(expander.call, serve.grpc_expander, credentials, recorder.grpc_answered))
    made.servers = tuple(servers)
    return made
