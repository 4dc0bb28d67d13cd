"""User data: makes a new machine join the cluster as a node, for each kind of image. Pure text.

Forms: NodeConfig node.eks.aws/v1alpha1 (awslabs/amazon-eks-ami, nodeadm) in a MIME part; Bottlerocket's TOML settings,
whose NVIDIA DRA driver runs only while the device plugin is off. Bottlerocket has that driver since release 1.66.0, in
the NVIDIA variants for Kubernetes 1.34 to 1.37 (bottlerocket pull requests 4926 and 4946, core-kit 1035); an older
release refuses settings with an unknown name, and does not join.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from email import message_from_string
from typing import Any, Final

from instance_catalog.kubernetes.label_syntax import is_label_key, label_mistakes
from instance_catalog.kubernetes.labels import NVIDIA_GPU_PRESENT
from providers.aws.node_template.template import Cluster, NodeTemplate, UserData
from providers.contract import LaunchRequest
from providers.errors import TemplateError

# EC2 takes 16 KiB before base64.
LONGEST: Final = 16 * 1024
_BOUNDARY: Final = "foreslice"
_CLUSTER_NAME: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,252}", re.ASCII)
_ENDPOINT: Final = re.compile(r"https://[0-9A-Za-z.\[\]:-]+(/[0-9A-Za-z._~/-]*)?", re.ASCII)
_STEPS: Final[Mapping[str, str]] = {
    "name": "use letters, digits, - _ and .",
    "endpoint": "write https:// and the host of the API server",
    "certificateAuthority": "write base64, as in a kubeconfig",
    "serviceCidr": "write a network such as 10.100.0.0/16",
}
_SHOWN: Final = 64  # the most characters of a wrong value in a message
_DNS: Final = 10
_IS_MIME: Final = re.compile(r"(MIME-Version|Content-Type: *multipart/)", re.IGNORECASE)
_GPU_OF_BOTTLEROCKET: Final = {
    "kubelet-dra-drivers": {"nvidia": {"enabled": True}},
    "kubelet-device-plugins": {"nvidia": {"enabled": False}},
}


def user_data(template: NodeTemplate, cluster: Cluster, request: LaunchRequest) -> str:
    """The user data of a launch, base64.

    Raises TemplateError for text that cannot be merged or is too long, and for whatever is no label, taint, name or
    address: nodeadm joins the kubelet's flags by blanks and systemd splits them again, so a blank in a label would be
    another flag, and a line break a variable of the kubelet's environment.
    """
    for wrong, step in _mistakes(template, cluster, request):
        raise TemplateError(f"no user data for {template.name}: {wrong}", next_step=step)
    match template.user_data:
        case UserData.AL2023:
            text = _nodeadm(template, cluster, request)
        case UserData.BOTTLEROCKET:
            text = _bottlerocket(template, cluster, request)
        case UserData.CUSTOM:
            text = template.user_data_text
    encoded = text.encode()
    if len(encoded) > LONGEST:
        step = f"shorten spec.userData: EC2 takes {LONGEST} bytes"
        raise TemplateError(f"the user data of {template.name} has {len(encoded)} bytes", next_step=step)
    return base64.b64encode(encoded).decode()


def node_labels(template: NodeTemplate, request: LaunchRequest) -> dict[str, str]:
    """The labels that a node registers with. Labels of the plan override those of the template."""
    return {**template.labels, **request.labels}


def _mistakes(template: NodeTemplate, cluster: Cluster, request: LaunchRequest) -> Iterator[tuple[str, str]]:
    """The values that user data cannot hold, each with its correction."""
    for mistake in label_mistakes(node_labels(template, request), request.taints):
        wrong, _, step = mistake.rpartition(": ")
        yield wrong, f"correct it in the pool or the node template: {step}"
    for name in request.kubelet_reserved:
        if not is_label_key(name):
            yield f"{name!r} is not a resource to reserve", "correct spec.kubeletReserved of the pool"
    for field, value, good in (
        ("name", cluster.name, _CLUSTER_NAME.fullmatch(cluster.name) is not None),
        ("endpoint", cluster.endpoint, _ENDPOINT.fullmatch(cluster.endpoint) is not None),
        ("certificateAuthority", cluster.certificate_authority, _is_base64(cluster.certificate_authority)),
        ("serviceCidr", cluster.service_cidr, _is_network(cluster.service_cidr)),
    ):
        if value and not good:
            yield f"spec.cluster.{field} cannot be {value[:_SHOWN]!r}", _STEPS[field]


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_network(text: str) -> bool:
    try:
        # The cluster's DNS has the tenth address.
        return ipaddress.ip_network(text).num_addresses > _DNS
    except ValueError:
        return False


def _nodeadm(template: NodeTemplate, cluster: Cluster, request: LaunchRequest) -> str:
    kubelet: dict[str, Any] = {"flags": [f"--node-labels={_pairs(node_labels(template, request))}"]}
    config: dict[str, Any] = {}
    if request.taints:
        config["registerWithTaints"] = [
            {"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in request.taints
        ]
    if request.kubelet_reserved:
        config["kubeReserved"] = {name: str(amount) for name, amount in sorted(request.kubelet_reserved.items())}
    if config:
        kubelet["config"] = config
    node = {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {
            "cluster": {
                "name": cluster.name,
                "apiServerEndpoint": cluster.endpoint,
                "certificateAuthority": cluster.certificate_authority,
                "cidr": cluster.service_cidr,
            },
            "kubelet": kubelet,
        },
    }
    # JSON is YAML. nodeadm merges documents and later ones win, so the values of the plan are last.
    parts = [*_parts_of_text(template.user_data_text), ("application/node.eks.aws", json.dumps(node, indent=2))]
    body = "".join(f"--{_BOUNDARY}\nContent-Type: {kind}\n\n{text}\n\n" for kind, text in parts)
    return f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="{_BOUNDARY}"\n\n{body}--{_BOUNDARY}--\n'


def _parts_of_text(text: str) -> list[tuple[str, str]]:
    """The template's own text: a script, or a NodeConfig of its own."""
    if not text.strip():
        return []
    if f"--{_BOUNDARY}" in text:
        step = "remove this text: it separates the parts of the user data"
        raise TemplateError(f"spec.userData.text contains --{_BOUNDARY}", next_step=step)
    if _IS_MIME.match(text):
        return _parts_of_mime(text)
    script = text.startswith("#!")
    if not script and "node.eks.aws" not in text:
        step = "start it with #! (a shell script), or write a NodeConfig of node.eks.aws/v1alpha1 or a MIME document"
        raise TemplateError("spec.userData.text is neither a script, a NodeConfig nor MIME", next_step=step)
    return [("text/x-shellscript; charset=us-ascii" if script else "application/node.eks.aws", text)]


def _parts_of_mime(text: str) -> list[tuple[str, str]]:
    """The parts of a MIME document, such as Karpenter and eksctl take: scripts, cloud configs, NodeConfigs."""
    document = message_from_string(text)
    parts = [part for part in document.walk() if not part.is_multipart()]
    if not document.is_multipart() or document.defects or not parts:
        step = "begin it with the headers MIME-Version and Content-Type: multipart/mixed with the boundary of its parts"
        raise TemplateError("spec.userData.text is no MIME document of several parts", next_step=step)
    found = []
    for part in parts:
        payload = part.get_payload(decode=True)
        assert isinstance(payload, bytes)
        charset = part.get_content_charset()
        kind = f"{part.get_content_type()}; charset={charset}" if charset else part.get_content_type()
        found.append((kind, payload.decode(charset or "utf-8").rstrip("\n")))
    return found


def _bottlerocket(template: NodeTemplate, cluster: Cluster, request: LaunchRequest) -> str:
    found = node_labels(template, request)
    kubernetes: dict[str, Any] = {
        "cluster-name": cluster.name,
        "api-server": cluster.endpoint,
        "cluster-certificate": cluster.certificate_authority,
        "node-labels": found,
    }
    if cluster.service_cidr:
        kubernetes["cluster-dns-ip"] = _dns_address(cluster.service_cidr)
    if request.taints:
        taints: dict[str, list[str]] = {}
        for taint in request.taints:
            taints.setdefault(taint.key, []).append(f"{taint.value}:{taint.effect}")
        kubernetes["node-taints"] = taints
    if request.kubelet_reserved:
        kubernetes["kube-reserved"] = {name: str(amount) for name, amount in sorted(request.kubelet_reserved.items())}
    gpu = _GPU_OF_BOTTLEROCKET if NVIDIA_GPU_PRESENT in found else {}
    ours = {"settings": {**gpu, "kubernetes": kubernetes}}
    try:
        own = tomllib.loads(template.user_data_text)
    except tomllib.TOMLDecodeError as error:
        raise TemplateError(f"spec.userData.text is no TOML: {error}", next_step="correct it") from error
    return _toml(_merged(own, ours))


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Tables merged; `over` wins."""
    result = dict(under)
    for key, value in over.items():
        below = result.get(key)
        result[key] = _merged(below, value) if isinstance(value, Mapping) and isinstance(below, Mapping) else value
    return result


def _toml(table: Mapping[str, Any], path: tuple[str, ...] = ()) -> str:
    """TOML of nested tables with scalars and lists of scalars, which is all that Bottlerocket's settings use."""
    own = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    lines = [f"[{'.'.join(map(_toml_value, path))}]\n"] if own and path else []
    lines += [f"{_toml_value(key)} = {_toml_value(value)}\n" for key, value in own.items()]
    return "".join(lines) + "".join(
        _toml(value, (*path, key)) for key, value in table.items() if isinstance(value, Mapping)
    )


def _toml_value(value: Any) -> str:
    """JSON's strings, whole numbers and lists are TOML's, but for the character DEL."""
    match value:
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case bool() | int():
            return json.dumps(value)
        case float() if math.isfinite(value):
            return json.dumps(value)
        case list():
            return f"[{', '.join(map(_toml_value, value))}]"
    step = "use strings, numbers, true, false and lists of them, as Bottlerocket's settings do"
    raise TemplateError(f"spec.userData.text holds {str(value)[:_SHOWN]!r}, no setting", next_step=step)


def _pairs(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _dns_address(cidr: str) -> str:
    """EKS puts the cluster's DNS at the tenth address of the service network."""
    return str(ipaddress.ip_network(cidr)[_DNS])
