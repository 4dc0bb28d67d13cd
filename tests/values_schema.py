"""The part of the chart's values.schema.json about settings, from the dataclasses of autoscaler/settings/settings.py.

It refuses what one value can be refused for. What values say together is for the controller to check at its start.
"""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import Any, Final

from autoscaler.settings.names import SECTIONS, SETTINGS, Section, Setting, camel_case
from autoscaler.settings.spans import PART

_ROOT: Final = Path(__file__).parent.parent
SCHEMA_FILE: Final = Path("deploy/charts/foreslice/values.schema.json")
_BEGIN: Final = '    "settings": '
_END: Final = ',\n    "rbac": '
_AMOUNT: Final = r"^[0-9]+(\.[0-9]+)?$"
# autoscaler/serve/listener.py, parse_address.
_ADDRESS: Final = r"^(off|.*:[0-9]{1,5})$"
_SPAN: Final = rf"^(0|({PART.pattern})+)$"
# autoscaler/settings/load.py: no other span may be 0.
_MAY_BE_ZERO: Final = frozenset({"batch.idle"})


def generated_files() -> dict[Path, str]:
    """The schema with today's settings; the rest of the file is written by hand."""
    before, begin, rest = (_ROOT / SCHEMA_FILE).read_text(encoding="utf-8").partition(_BEGIN)
    _, end, after = rest.partition(_END)
    assert begin, f"{SCHEMA_FILE} has no settings"
    assert end, f"{SCHEMA_FILE} has no rbac after the settings"
    return {SCHEMA_FILE: "".join((before, begin, _text(settings_schema(), indent=4), end, after))}


def settings_schema() -> dict[str, Any]:
    """JSON schema (draft 7) of the file of settings."""
    sections = {section.name: _object(_section(section)) for section in SECTIONS}
    return {"description": "The controller's settings, docs/settings.md.", **_object(sections)}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _section(section: Section) -> dict[str, Any]:
    declared = SETTINGS.json_schema()["$defs"][section.owner.__name__]["properties"]
    return {camel_case(setting.field): _value(setting, declared[setting.field]) for setting in section.settings()}


def _value(setting: Setting, declared: dict[str, Any]) -> dict[str, Any]:
    if isinstance(setting.type, type) and issubclass(setting.type, Enum):
        return {"enum": [member.value for member in setting.type]}
    match setting.unit:
        case "duration":
            zero = {} if setting.key in _MAY_BE_ZERO else {"allOf": [{"pattern": "[1-9]"}]}
            return {"type": "string", "maxLength": 64, "pattern": _SPAN, **zero}
        case "US dollars":
            return {"type": ["number", "string", "null"], "minimum": 0, "pattern": _AMOUNT}
        case "list":
            return {"type": ["array", "string"], "items": {"type": "string"}}
        case "text" if setting.section == "serve":
            return {"type": "string", "pattern": _ADDRESS}
    found = next((option for option in declared.get("anyOf", ()) if option["type"] != "null"), declared)
    kept = {key: found[key] for key in ("type", "minimum") if key in found}
    return {**kept, "type": [kept["type"], "null"]} if "anyOf" in declared else kept


def _text(found: Any, *, indent: int) -> str:
    """JSON, with what fits a line on one line."""
    line = json.dumps(found, ensure_ascii=False)
    if not isinstance(found, dict) or len(line) + indent < 100:
        return line
    inner = ",\n".join(
        f"{' ' * (indent + 2)}{json.dumps(key)}: {_text(value, indent=indent + 2)}" for key, value in found.items()
    )
    return f"{{\n{inner}\n{' ' * indent}}}"
