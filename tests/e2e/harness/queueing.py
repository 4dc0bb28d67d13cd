"""Kueue beside the cluster: its own chart by Helm, its controller manager a real process with the chart's rights.

What differs from an installation in a cluster: the webhook Service is an ExternalName for this machine, since no pod of
Kueue runs; the certificates that Kueue makes are copied from its Secret, as a kubelet would mount them; and its own
extension API server (VisibilityOnDemand), MultiKueue and every integration but Jobs are off.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from autoscaler.cluster.api import NotFoundError, Object
from autoscaler.cluster.resources import CAPACITY_BUFFERS, CUSTOM_RESOURCE_DEFINITIONS, PROVISIONING_REQUESTS, Resource
from tests.e2e.harness.control_plane import free_ports
from tests.e2e.harness.installation import Installation
from tests.e2e.harness.toolbox import downloaded, helm
from tests.go_binary import GoProgram

_MODULE: Final = Path(__file__).parent / "kueue"
KUEUE: Final = GoProgram(
    "kueue",
    _MODULE,
    requires="sigs.k8s.io/kueue",
    takes="some 5 minutes on two cores",
    package="sigs.k8s.io/kueue/cmd/kueue",
)
NAMESPACE: Final = "kueue-system"
# What Kueue does not bring, by module: as it requires it, or at a version that needs no newer Go.
_DEFINITIONS: Final = {
    "k8s.io/autoscaler/cluster-autoscaler/apis": "config/crd/autoscaling.x-k8s.io_provisioningrequests.yaml",
    "sigs.k8s.io/karpenter@v1.14.1": "pkg/apis/crds/autoscaling.x-k8s.io_capacitybuffers.yaml",
}
_ADMISSION: Final = "admissionregistration.k8s.io"
_SECRETS: Final = Resource("", "v1", "secrets", "Secret", namespaced=True)
_SERVICES: Final = Resource("", "v1", "services", "Service", namespaced=True)
_WEBHOOKS: Final = tuple(
    Resource(_ADMISSION, "v1", f"{kind.lower()}s", kind)
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
)
_API_SERVICES: Final = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService")
ADMISSION_CHECKS: Final = Resource("kueue.x-k8s.io", "v1beta2", "admissionchecks", "AdmissionCheck")
CHECK_CONFIGS: Final = Resource("kueue.x-k8s.io", "v1beta2", "provisioningrequestconfigs", "ProvisioningRequestConfig")
FLAVORS: Final = Resource("kueue.x-k8s.io", "v1beta2", "resourceflavors", "ResourceFlavor")
CLUSTER_QUEUES: Final = Resource("kueue.x-k8s.io", "v1beta2", "clusterqueues", "ClusterQueue")
LOCAL_QUEUES: Final = Resource("kueue.x-k8s.io", "v1beta2", "localqueues", "LocalQueue", namespaced=True)
WORKLOADS: Final = Resource("kueue.x-k8s.io", "v1beta2", "workloads", "Workload", namespaced=True)
JOBS: Final = Resource("batch", "v1", "jobs", "Job", namespaced=True)
KINDS: Final = {
    found.kind: found for found in (ADMISSION_CHECKS, CHECK_CONFIGS, FLAVORS, CLUSTER_QUEUES, LOCAL_QUEUES, JOBS)
}


class Kueue:
    """Kueue in an installation's cluster. A context manager."""

    def __init__(self, cluster: Installation, configuration: Object) -> None:
        """`configuration` is what the cluster's Configuration says beyond how the process runs here."""
        self._cluster = cluster
        self._api = cluster.api
        self._configuration = configuration
        self._folder = cluster.folder
        self._webhooks, self._health = free_ports(2)

    def __enter__(self) -> Kueue:
        binary = KUEUE.binary()
        self._install()
        certificates = self._folder / "kueue-certificates"
        certificates.mkdir()
        file = self._folder / "kueue.yaml"
        file.write_text(yaml.safe_dump(self._settings(certificates)), encoding="utf-8")
        account = self._cluster.control_plane.service_account(NAMESPACE, "kueue-controller-manager")
        with (self._folder / "kueue.log").open("wb") as log:
            command = [str(binary), f"--config={file}", f"--kubeconfig={account}", "--zap-log-level=2"]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=dict(os.environ))
        try:
            self._cluster.wait_until(partial(self._mount, certificates), "Kueue's certificates")
            self._cluster.wait_until(self._ready, "Kueue")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def apply(self, text: str) -> None:
        """Create all objects of a text, of Kueue's kinds and others; a refusal of Kueue's webhooks is an error."""
        for document in yaml.safe_load_all(text):
            if document["kind"] in KINDS:
                self._api.create(KINDS[document["kind"]], document)
            else:
                self._cluster.apply(yaml.safe_dump(document))

    def _install(self) -> None:
        """The kinds that Kueue does not bring, then its chart; what serves nobody here is taken away."""
        for module, path in _DEFINITIONS.items():
            text = (Path(downloaded(_MODULE, module)) / path).read_text(encoding="utf-8")
            self._api.create(CUSTOM_RESOURCE_DEFINITIONS, yaml.safe_load(text))
        self._cluster.wait_until(self._kinds_are_served, "the kinds ProvisioningRequest and CapacityBuffer")
        values = self._folder / "kueue-values.json"
        chosen: Any = {
            "controllerManager": {"replicas": 0},
            "managerConfig": {"controllerManagerConfigYaml": yaml.safe_dump(self._settings(Path("/certificates")))},
        }
        values.write_text(json.dumps(chosen), encoding="utf-8")
        chart = f"{downloaded(_MODULE, KUEUE.requires)}/charts/kueue"
        admin = self._cluster.control_plane.identity("kueue-admin", "system:masters")
        where = ["--namespace", NAMESPACE, "--create-namespace", "--disable-openapi-validation"]
        helm("install", "kueue", chart, "--values", str(values), *where, kubeconfig=admin)
        for version in ("v1beta1", "v1beta2"):
            self._api.delete(_API_SERVICES, f"{version}.visibility.kueue.x-k8s.io")
        self._reach()

    def _reach(self) -> None:
        """Let the API server find the webhooks on this machine."""
        here = {"spec": {"type": "ExternalName", "externalName": "localhost", "clusterIP": None, "clusterIPs": None}}
        self._api.patch(_SERVICES, "kueue-webhook-service", here, namespace=NAMESPACE)
        for resource in _WEBHOOKS:
            for found in self._api.list(resource).items:
                hooks = [hook for hook in found["webhooks"] if "service" in hook["clientConfig"]]
                for hook in hooks:
                    hook["clientConfig"]["service"]["port"] = self._webhooks
                self._api.patch(resource, found["metadata"]["name"], {"webhooks": found["webhooks"]})
        for found in self._api.list(CUSTOM_RESOURCE_DEFINITIONS).items:
            if found["spec"].get("conversion", {}).get("strategy") == "Webhook":
                port = {"service": {"port": self._webhooks}}
                patch = {"spec": {"conversion": {"webhook": {"clientConfig": port}}}}
                self._api.patch(CUSTOM_RESOURCE_DEFINITIONS, found["metadata"]["name"], patch)

    def _settings(self, certificates: Path) -> Object:
        return {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "kind": "Configuration",
            **self._configuration,
            "health": {"healthProbeBindAddress": f"127.0.0.1:{self._health}"},
            "metrics": {"bindAddress": "0"},
            "webhook": {"host": "127.0.0.1", "port": self._webhooks, "certDir": str(certificates)},
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {
                "enable": True,
                "webhookServiceName": "kueue-webhook-service",
                "webhookSecretName": "kueue-webhook-server-cert",
            },
            "featureGates": {"VisibilityOnDemand": False, "MultiKueue": False},
            "integrations": {"frameworks": ["batch/job"]},
        }

    def _kinds_are_served(self) -> bool:
        with suppress(NotFoundError):
            return not any(self._api.list(kind).items for kind in (PROVISIONING_REQUESTS, CAPACITY_BUFFERS))
        return False

    def _mount(self, folder: Path) -> bool:
        """Whether Kueue has made its certificates; then they are files."""
        data = self._api.get(_SECRETS, "kueue-webhook-server-cert", namespace=NAMESPACE).get("data", {})
        if self._process.poll() is not None:
            raise AssertionError("Kueue has ended")
        for name in ("tls.key", "tls.crt") if "tls.crt" in data else ():
            file = folder / name
            file.touch(mode=0o600)
            file.write_bytes(base64.b64decode(data[name]))
        return "tls.crt" in data

    def _ready(self) -> bool:
        with suppress(httpx.HTTPError):
            return httpx.get(f"http://127.0.0.1:{self._health}/readyz", trust_env=False).status_code == httpx.codes.OK
        return False
