"""Which templates of a Workflow run, how many times at once, and with which values of parameters.

Rules: argoproj/argo-workflows f016ad8, pkg/apis/workflow/v1alpha1/workflow_types.go, and "Loops", "Steps", "DAG",
"Parameters" of its walk-through. A template that calls itself is counted once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterator
from functools import cached_property
from typing import Any, Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.problem import in_shell
from autoscaler.kube.workloads.stamping import MOST_PODS
from instance_catalog.dataclass import dataclass

# {{workflow.parameters.x}}, {{inputs.parameters.x}}, {{workflow.name}}
_TAG: Final = re.compile(r"\{\{\s*(?:(workflow|inputs)\.parameters\.([\w-]+)|workflow\.name)\s*\}\}")
_DEEPEST: Final = 30  # callers of callers whose arguments are followed
_MOST_VISITS: Final = 100_000
_MOST_FILLED: Final = 1_000_000  # for the parameters of a Workflow: characters, and steps that give them
SCHEDULING: Final = ("nodeSelector", "affinity", "tolerations")  # that a pod takes from the template that calls its own
_LOOPS: Final = ("withItems", "withParam", "withSequence")
CLUSTER: Final = "cluster:"  # before the name of a ClusterWorkflowTemplate
UNKNOWN_VALUE: Final = (
    "give spec.arguments.parameters the value of the run, or the pods of the run (kubectl get pods -o yaml)"
)
_OF_RUN: Final = "to plan for as many as you expect, write withItems, or give the pods of the run"


@dataclass(frozen=True, slots=True)
class Call:
    """A step or task that runs a template. Those of one `group` of a caller start together."""

    caller: str
    target: str
    step: Fields
    group: Hashable


class Flow:
    """The templates of a Workflow by name; those of inline steps are <caller>/<step>."""

    def __init__(self, spec: Fields, name: str) -> None:
        self.name = name
        self.spec = spec
        self.templates = {one.text("name"): one for one in spec.children("templates")}
        self.arguments = dict(_given(spec.child("arguments")))
        self.roots = list(dict.fromkeys(self._roots()))
        self.calls: dict[str, list[Call]] = {}
        self.sites: dict[str, list[Call]] = {}
        self.overfilled = False
        self._inputs: dict[tuple[str, str], str | None] = {}
        self._values: dict[int, dict[str, str | None]] = {}  # by the identity of arguments or inputs
        self._left = _MOST_FILLED
        self._together: dict[str, dict[str, int]] = {}
        waiting = list(self.roots)
        while waiting:
            caller = waiting.pop()
            if caller in self.calls or caller not in self.templates:
                continue
            self.calls[caller] = list(self._calls(caller))
            for call in self.calls[caller]:
                self.sites.setdefault(call.target, []).append(call)
                waiting.append(call.target)

    def _roots(self) -> Iterator[str]:
        if "entrypoint" in self.spec:
            yield self._known(self.spec, "entrypoint", self.spec.text("entrypoint"))
        else:
            yield from self.templates
        for field, holder, target in _afterwards(self.spec):
            yield self._known(holder, field, target)

    def _known(self, holder: Fields, field: str, target: str) -> str:
        if target and "{{" not in target and target not in self.templates:
            name, _, template = target.rpartition("/")
            if name:
                kind = "ClusterWorkflowTemplate" if name.startswith(CLUSTER) else "WorkflowTemplate"
                called = name.removeprefix(CLUSTER)
                get = f"kubectl get {kind.lower()} {in_shell(called)} -o yaml"
                message = f"template {template} is of {kind} {called}, which the files lack"
                holder.error(field, message, f"add it to the files (`{get}`)")
            else:
                holder.error(field, f"there is no template {target!r} in it", "add the template, or correct the name")
        return target

    def _calls(self, caller: str) -> Iterator[Call]:
        for group, step in _steps(self.templates[caller]):
            if inline := step.optional_child("inline"):
                target = f"{caller}/{step.text('name')}"
                self.templates[target] = inline
            else:
                field = "templateRef" if "templateRef" in step else "template"
                target = self._known(step, field, target_of(step))
            yield Call(caller, target, step, group)
            for field, holder, after in _afterwards(step):
                yield Call(caller, self._known(holder, field, after), Fields({}), (group, field, step.path))

    @cached_property
    def numbers(self) -> dict[tuple[str, str], int]:
        """How many of each template run at once at most, as far as that is written: by its name and that of the caller,
        where the caller says on which nodes its pods run."""
        found: dict[tuple[str, str], int] = {}
        waiting = [(root, "", 1) for root in reversed(self.roots) if root in self.templates]
        visits = 0
        while waiting and visits < _MOST_VISITS:
            name, boundary, times = waiting.pop()
            if found.get((name, boundary), 0) >= times:
                continue
            visits += 1
            found[name, boundary] = times
            placed = name if any(field in self.templates[name] for field in SCHEDULING) else ""
            if name not in self._together:
                self._together[name] = self._at_once(name)
            together = list(self._together[name].items())
            waiting += [(target, placed, min(times * each, MOST_PODS + 1)) for target, each in reversed(together)]
        if waiting:
            self.spec.error("templates", "call each other too often to follow", "give the pods of the run")
        return found

    def _at_once(self, caller: str) -> dict[str, int]:
        """How many of each template a run of `caller` starts together at most."""
        groups: dict[Hashable, dict[str, int]] = {}
        for call in self.calls[caller]:
            if call.target in self.templates:
                group = groups.setdefault(call.group, {})
                group[call.target] = group.get(call.target, 0) + self._times(call)
        limit = self.limit(self.templates[caller])
        found: dict[str, int] = {}
        for group in groups.values():
            for target, number in group.items():
                found[target] = max(found.get(target, 0), min(number, limit))
        return found

    @staticmethod
    def limit(holder: Fields) -> int:
        """How many pods of a Workflow or of a caller may run at a time."""
        given = holder.optional_integer("parallelism")
        return given if given is not None and given > 0 else MOST_PODS + 1

    def _times(self, call: Call) -> int:
        """How many times a step runs, as far as that is written: once, with a warning, where only the run knows it."""
        step = call.step
        field = next((one for one in _LOOPS if one in step), "")
        if not field:
            return 1
        number = _length(field, self.filled(step.raw(field), call.caller))
        if number is None:
            step.warn(field, "how many run is known only once the Workflow runs: planned for one", _OF_RUN)
            return 1
        return number

    def filled(self, value: Any, template: str) -> Any:
        """The value with the parameters in it that have one value."""
        if isinstance(value, dict):
            return {key: self.filled(one, template) for key, one in value.items()}
        if isinstance(value, list):
            return [self.filled(one, template) for one in value]
        return self._text(value, template, 0) if isinstance(value, str) and "{{" in value else value

    def _text(self, text: str, template: str, depth: int) -> str:
        def known(found: re.Match[str]) -> str:
            scope, parameter = found.groups()
            if scope is None:
                value: str | None = self.name
            elif scope == "workflow":
                value = self.arguments.get(parameter) or None
            else:
                value = self._input(template, parameter, depth + 1)
            return found[0] if value is None or not self._pay(len(value)) else value

        return _TAG.sub(known, text)

    def _pay(self, units: int) -> bool:
        """False, with an error, once parameters are too much work: a few that repeat each other make gigabytes."""
        self._left -= units
        if self._left < 0 and not self.overfilled:
            self.overfilled = True
            message = f"to fill in its parameters takes more than {_MOST_FILLED:,} characters and steps"
            self.spec.error("templates", message, "give the pods of the run (kubectl get pods -o yaml)")
        return not self.overfilled

    def _input(self, template: str, parameter: str, depth: int) -> str | None:
        """The value of a parameter of a template, if all that call it give it the same."""
        if depth > _DEEPEST or template not in self.templates:
            return None
        key = template, parameter
        if key not in self._inputs:
            self._inputs[key] = None  # while its callers are asked, of which it may be one
            self._inputs[key] = self._given_by_all(template, parameter, depth)
        return self._inputs[key]

    def _given_by_all(self, template: str, parameter: str, depth: int) -> str | None:
        own = self._given_in(self.templates[template], "inputs")
        if not self._pay(len(sites := self.sites.get(template, []))):
            return None
        values = {
            self._text(text, call.caller, depth) if text is not None else None
            for call in sites
            for text in (self._given_in(call.step, "arguments").get(parameter, own.get(parameter)),)
        }
        if template in self.roots:
            values.add(self.arguments.get(parameter, own.get(parameter)))
        (value, *others) = values or {None}
        return None if others or value is None or "{{" in value else value

    def _given_in(self, holder: Fields, field: str) -> dict[str, str | None]:
        """The parameters of its arguments or inputs, read once."""
        key = id(holder.raw(field))
        if key not in self._values:
            self._values[key] = dict(_given(holder.child(field)))
        return self._values[key]

    def left(self, value: Any) -> str:
        """The first variable in a value; "" without any."""
        if isinstance(value, dict):
            value = [*value, *value.values()]
        if isinstance(value, list):
            return next((found for one in value if (found := self.left(one))), "")
        _, opening, rest = value.partition("{{") if isinstance(value, str) else ("", "", "")
        inner, closing, _ = rest.partition("}}")
        return f"{opening}{inner}{closing}" if closing else ""


def target_of(step: Fields) -> str:
    """The name of the template that a step runs; those of other objects are <object>/<template>."""
    reference = step.child("templateRef")
    if "templateRef" not in step:
        return step.text("template")
    prefix = CLUSTER if reference.flag("clusterScope") else ""
    return f"{prefix}{reference.text('name')}/{reference.text('template')}"


def _steps(template: Fields) -> Iterator[tuple[Hashable, Fields]]:
    """The steps and tasks of a template, each with what it shares with those that start together with it."""
    groups = template.raw("steps")
    for index, group in enumerate(groups if isinstance(groups, list) else ()):
        path = (*template.path, "steps", index)
        for place, step in enumerate(group if isinstance(group, list) else [group]):
            yield index, Fields(step, template.problems, (*path, place))
    for task in template.child("dag").children("tasks"):
        yield (tuple(sorted(task.texts("dependencies"))), task.text("depends")), task


def _afterwards(holder: Fields) -> Iterator[tuple[str, Fields, str]]:
    """The templates that run when a Workflow or step ends or reaches a condition, with the field that names them."""
    if holder.text("onExit"):
        yield "onExit", holder, holder.text("onExit")
    hooks = holder.child("hooks")
    for name in hooks.names():
        yield "template", hooks.child(name), target_of(hooks.child(name))


def _given(holder: Fields) -> Iterator[tuple[str, str | None]]:
    """The parameters of arguments or inputs with their values or defaults; None for those that the run finds out."""
    for one in holder.children("parameters"):
        value = one.raw("value") if "value" in one else one.raw("default")
        known = str(value).lower() if isinstance(value, bool) else str(value)
        if value is not None or "valueFrom" in one:
            yield one.text("name"), known if isinstance(value, str | int | float) else None


def _length(field: str, value: Any) -> int | None:
    """How many times a loop runs; None if that is not written."""
    if field == "withItems":
        return len(value) if isinstance(value, list) else None
    if field == "withParam":
        try:
            items = json.loads(value) if isinstance(value, str) and len(value) < 1_000_000 else None
        except (ValueError, RecursionError):
            return None
        return len(items) if isinstance(items, list) else None
    sequence = value if isinstance(value, dict) else {}
    try:
        if "count" in sequence:
            return max(0, int(str(sequence["count"])))
        return abs(int(str(sequence["end"])) - int(str(sequence.get("start", 0)))) + 1
    except (ValueError, KeyError):
        return None
