"""The address and credentials of the API server: a kubeconfig, or the service account of the pod. Makes no request.

The `kubernetes` package reads the configuration, with exec plug-ins; defects on which it would only fail, such as a
file that is no YAML or a misspelt context, are checked before, with an error that names the correction.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from autoscaler.cluster.client.answers import words_of
from autoscaler.errors import ConfigurationError
from instance_catalog.spelling import did_you_mean

_DEFAULT = "~/.kube/config"
_STEP = "give --kubeconfig or --context, or set KUBECONFIG; `kubectl config get-contexts` lists what there is"


def load_configuration(*, kubeconfig: str = "", context: str = "") -> Any:
    """The `kubernetes.client.Configuration` of a kubeconfig, or in a pod (without arguments) of its service account.

    `kubeconfig` may be several paths, as in KUBECONFIG; as with kubectl, those that do not exist count as empty. Raises
    ConfigurationError if nothing usable is configured.
    """
    from kubernetes import config
    from kubernetes.client import Configuration

    load: Any = config  # its loaders carry no annotations
    found: Any = Configuration()
    try:
        if "KUBERNETES_SERVICE_HOST" in os.environ and "KUBECONFIG" not in os.environ and not (kubeconfig or context):
            load.load_incluster_config(client_configuration=found, try_refresh_token=False)
            found.refresh_api_key_hook = _read_token
            return found
        places = kubeconfig or os.environ.get("KUBECONFIG") or _DEFAULT
        paths = [path for place in places.split(os.pathsep) if place and (path := Path(place).expanduser()).exists()]
        if not paths:
            raise ConfigurationError(f"there is no kubeconfig {places}", next_step=_STEP)
        names = [name for path in paths for name in _contexts(path)]
        if context and names and context not in names:
            step = did_you_mean(context, names, f"the contexts are {', '.join(names)}")
            raise ConfigurationError(f"there is no context {context!r} in {places}", next_step=step)
        with _complaints() as complaints:
            load.load_kube_config(
                config_file=places, context=context or None, client_configuration=found, persist_config=False
            )
    except config.ConfigException as error:
        raise ConfigurationError(f"no Kubernetes cluster is configured: {words_of(error)}", next_step=_STEP) from error
    except ConfigurationError:
        raise
    except Exception as error:  # a kubeconfig may contain anything, so its loader may raise anything
        what = f"{type(error).__name__}: {words_of(error)}"
        raise ConfigurationError(f"the kubeconfig cannot be used ({what})", next_step=_STEP) from error
    if complaints and not found.api_key and not found.cert_file:
        # The loader continues without credentials, and the API server would only say that the client is unknown.
        raise ConfigurationError(
            f"the credential plug-in of {places} gives no credentials: {complaints[0]}",
            next_step="run the command under `exec` of the kubeconfig's user by hand, and sign in if it asks for that",
        )
    return found


def default_namespace(*, kubeconfig: str = "", context: str = "") -> str:
    """The namespace in which kubectl creates objects that name none: that of the context, or of the pod's service
    account."""
    from kubernetes import config
    from kubernetes.config import incluster_config

    if "KUBERNETES_SERVICE_HOST" in os.environ and "KUBECONFIG" not in os.environ and not (kubeconfig or context):
        mounted = Path(incluster_config.SERVICE_TOKEN_FILENAME).with_name("namespace")
        return (mounted.read_text(encoding="utf-8").strip() if mounted.exists() else "") or "default"
    places = kubeconfig or os.environ.get("KUBECONFIG") or _DEFAULT
    listed: Any = config
    contexts, current = listed.list_kube_config_contexts(config_file=places)
    chosen = next((one for one in contexts if one["name"] == context), None) if context else current
    return str(((chosen or {}).get("context") or {}).get("namespace") or "default")


def _read_token(configuration: Any) -> None:
    """The service account's token as it is now, for each request: the kubelet renews it, and to read it costs little.

    The package's own hook reads it once a minute by the wall clock, and after that was set back by hours not at all.
    """
    from kubernetes.config import incluster_config

    token = Path(incluster_config.SERVICE_TOKEN_FILENAME).read_text(encoding="utf-8").strip()
    if not token:
        raise ValueError("the mounted token is empty")
    configuration.api_key["BearerToken"] = f"Bearer {token}"


@contextmanager
def _complaints() -> Iterator[list[str]]:
    """Collects the loader's log messages about failing plug-ins, which it does not raise."""
    heard: list[str] = []

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(words_of(Exception(record.getMessage())))

    handler = Listening(logging.ERROR)
    logging.getLogger().addHandler(handler)
    try:
        yield heard
    finally:
        logging.getLogger().removeHandler(handler)


def _contexts(path: Path) -> Iterator[str]:
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as error:
        # PyYAML's own text quotes the lines around the mistake, where the token may stand.
        mark = error.problem_mark or error.context_mark
        what = ": ".join(part for part in (error.context, error.problem) if part)
        place = f" (line {mark.line + 1})" if mark else ""
        raise ConfigurationError(f"the kubeconfig {path} cannot be read: {what}{place}", next_step=_STEP) from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigurationError(f"the kubeconfig {path} cannot be read: {error}", next_step=_STEP) from error
    if not isinstance(content, Mapping):
        raise ConfigurationError(f"{path} is not a kubeconfig: it holds no fields", next_step=_STEP)
    for entry in content.get("contexts") or ():
        if isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
            yield entry["name"]
