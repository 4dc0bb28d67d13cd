"""docs/settings.md, from the dataclasses of autoscaler/settings/settings.py."""

from __future__ import annotations

from pathlib import Path

from autoscaler.settings.names import SECTIONS, Section

_HEAD = """# Settings

Generated from `autoscaler/settings/settings.py` by `make generate`.

`foreslice run` reads one YAML file (`--config`, `FORESLICE_CONFIG`), over it the environment, over both flags. Every
setting has the same name in all three: `lease.renewDeadline` in the file is `FORESLICE_LEASE_RENEW_DEADLINE` and
`--lease-renew-deadline`. A name that does not exist and a value that cannot be read end the process with an error that
names the file, variable or flag. Variables such as `FORESLICE_SERVICE_HOST`, which Kubernetes sets for Services, are no
settings. No setting is a secret: credentials come from the service account or the kubeconfig.

```yaml
cluster:
  name: prod-eu
spending:
  maxUsdPerHour: 250
lease:
  renewDeadline: 10s
```

Durations are written like `30s`, `5m` or `1h30m`; lists in variables and flags are separated by commas.
"""


def generated_files() -> dict[Path, str]:
    """The reference page."""
    return {Path("docs/settings.md"): "\n".join((_HEAD, *map(_section, SECTIONS)))}


def _section(section: Section) -> str:
    rows = [
        f"| `{setting.key}` | {setting.unit.replace('|', ', ')} | {_code(setting.default_text)} | {setting.reason} |"
        for setting in section.settings()
    ]
    head = ["| setting | value | default | what and why |", "|---|---|---|---|"]
    return "\n".join((f"## {section.name}", "", section.purpose, "", *head, *rows, ""))


def _code(text: str) -> str:
    return f"`{text}`" if text else ""
