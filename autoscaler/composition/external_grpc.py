"""Cluster Autoscaler's gRPC services, as the settings ask for them. grpcio is imported only if they do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import structlog

from autoscaler.cluster.api import KubernetesApi
from autoscaler.externalgrpc.expander import Expander
from autoscaler.externalgrpc.node_groups import Launchable, launchable_of
from autoscaler.externalgrpc.service import CloudProvider
from autoscaler.loop.loop import Tick
from autoscaler.serve.recorder import Recorder
from autoscaler.settings.settings import OFF, Settings

if TYPE_CHECKING:
    from autoscaler.externalgrpc.server import GrpcServer

_LOG: Final = structlog.get_logger("foreslice.externalgrpc")


@dataclass(slots=True)
class ExternalGrpc:
    """The services with their servers. They answer from the first reconcile of this replica on."""

    provider: CloudProvider
    settings: Settings
    servers: tuple[GrpcServer, ...] = ()
    launchable: Launchable | None = None

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

    def stop(self) -> None:
        """Finish the calls under way."""
        for server in self.servers:
            server.stop()


def external_grpc_of(settings: Settings, api: KubernetesApi, recorder: Recorder) -> ExternalGrpc | None:
    """The services that the settings ask for; None for none. `api` refuses writes of a replica that does not lead.

    Raises ConfigurationError for addresses without certificates, ModuleNotFoundError without grpcio.
    """
    serve, options = settings.serve, settings.grpc
    if OFF == serve.external_grpc == serve.grpc_expander:
        return None
    from autoscaler.externalgrpc.server import Certificates, GrpcServer, credentials_of

    files = Certificates(options.certificate, options.key, options.client_ca)
    provider = CloudProvider(api, lambda: uuid4().hex[:10], slices=options.resource_slices, most=options.groups)
    made = ExternalGrpc(provider, settings)
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
