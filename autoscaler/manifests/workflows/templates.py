"""Workflows completed by the WorkflowTemplates that they name in the same files, and the objects that they create.

Ported rules: argoproj/argo-workflows f016ad8, docs/workflow-templates.md: the spec of a Workflow counts over that of
its `workflowTemplateRef`; a `templateRef` runs a template with those that it calls in its own object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from autoscaler.cel.common.evaluation import Account, BudgetSpentError, Purse, on_account, pay
from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import header
from autoscaler.manifests.document import Document, UnreadableError
from autoscaler.manifests.documents import Below, EmptyList
from autoscaler.manifests.merged import MOST_MERGED, over
from autoscaler.manifests.workflows.graph import CLUSTER, Flow
from autoscaler.manifests.yaml_documents import read_yaml
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Diagnostic

# (prefix for templates of the object, namespace or "") to its spec.
_Templates: TypeAlias = Mapping[tuple[str, str], Fields]
_Read: TypeAlias = Document | EmptyList | Diagnostic

_ARGO: Final = "argoproj.io/"
_TEMPLATES: Final = ("WorkflowTemplate", "ClusterWorkflowTemplate")
_RUN: Final = ("Workflow", "CronWorkflow")
_CREATING: Final = ("create", "apply")
_CREATED: Final = 300  # fields that an object counts for, so that all Workflows together create 10,000 at most
_CHARACTERS: Final = 10  # of a manifest that count as a field
_DEEPEST: Final = 10  # Workflows that create Workflows
_ENDED: Final = ("Succeeded", "Failed", "Error")


def with_workflow_templates(read: Sequence[_Read]) -> list[_Read]:
    """The documents, with each Workflow completed by the templates of other objects that it names, and followed by the
    objects that its resource templates create. Templates that a Workflow names are planned with it alone."""
    if not any(isinstance(one, Document) and _kind(one) in (*_TEMPLATES, *_RUN) for one in read):
        return list(read)
    templates = {_key(one): Fields(one.value).child("spec") for one in _of(read, _TEMPLATES)}
    named: set[tuple[str, str]] = set()
    found: list[_Read] = []
    with on_account(Account(own=0, shared=Purse(MOST_MERGED), most=MOST_MERGED)):
        for one in read:
            if not isinstance(one, Document) or _kind(one) not in (*_TEMPLATES, *_RUN):
                found.append(one)
                continue
            try:
                found += _with_created(one, templates, named)
            except BudgetSpentError:
                step = "plan for fewer at a time, or give the pods of the runs (kubectl get pods -o yaml)"
                message = (
                    f"more than {MOST_MERGED:,} fields in templates that it and others name, and in what they create"
                )
                return [one.located(Diagnostic(message, step))]
    return [one for one in found if not (isinstance(one, Document) and _kind(one) in _TEMPLATES and _key(one) in named)]


def _with_created(one: Document, templates: _Templates, named: set[tuple[str, str]], depth: int = 0) -> Iterator[_Read]:
    """The completed Workflow and what it creates, of which other Workflows create more."""
    yield (made := _completed(one, templates, named))
    for created in _created(made):
        if not isinstance(created, Document) or _kind(created) not in (*_TEMPLATES, *_RUN):
            yield created
        elif depth < _DEEPEST:
            yield from _with_created(created, templates, named, depth + 1)
        else:
            message = f"Workflows that create Workflows are followed {_DEEPEST} levels deep"
            yield one.located(Diagnostic(message, "give the pods of the runs (kubectl get pods -o yaml)"))


def _of(read: Iterable[_Read], kinds: Sequence[str]) -> Iterator[Document]:
    return (one for one in read if isinstance(one, Document) and _kind(one) in kinds)


def _kind(one: Document) -> str:
    version, kind = header(one.value)
    return kind if version.startswith(_ARGO) else ""


def _key(one: Document) -> tuple[str, str]:
    if _kind(one) == "ClusterWorkflowTemplate":
        return f"{CLUSTER}{one.metadata.name}", ""
    return one.metadata.name, one.metadata.namespace


def _path(kind: str) -> tuple[str, ...]:
    return ("spec", "workflowSpec") if kind == "CronWorkflow" else ("spec",)


def _completed(one: Document, templates: _Templates, named: set[tuple[str, str]]) -> Document:
    kind, namespace = _kind(one), one.metadata.namespace
    value = one.value
    spec: Any = value
    for part in _path(kind):
        spec = spec.get(part) if isinstance(spec, dict) else None
    if not isinstance(spec, dict):
        return one
    reference = Fields(spec).child("workflowTemplateRef")
    key = _found(reference, namespace, templates)
    if key in templates:
        if kind in _RUN:
            named.add(key)
        base = {name: templates[key].raw(name) for name in templates[key].names()}
        spec = over(base, {name: part for name, part in spec.items() if name != "workflowTemplateRef"})
    spec = _with_called(dict(spec), namespace, templates, named if kind in _RUN else set())
    made = {**value["spec"], "workflowSpec": spec} if kind == "CronWorkflow" else spec
    return replace(one, value={**value, "spec": made})


def _found(reference: Fields, namespace: str, templates: _Templates) -> tuple[str, str]:
    name = reference.text("name")
    return (f"{CLUSTER}{name}", "") if reference.flag("clusterScope") else (name, namespace)


def _with_called(
    spec: dict[str, Any], namespace: str, templates: _Templates, named: set[tuple[str, str]]
) -> dict[str, Any]:
    """The spec with the templates of the objects that its steps name, as <object>/<template>."""
    found = spec.get("templates")
    if not isinstance(found, list):
        return spec
    all_of, met, waiting = list(found), set[tuple[str, str]](), list(found)
    while waiting:
        for step in _steps(waiting.pop()):
            reference = Fields(step.get("templateRef"))
            key = _found(reference, namespace, templates)
            if "templateRef" not in step or key in met or key not in templates:
                continue
            met.add(key)
            named.add(key)
            pay(sum(1 + _size(one) for one in _list(templates[key].raw("templates"))))
            copied = [_renamed(one, key[0]) for one in _list(templates[key].raw("templates"))]
            all_of += copied
            waiting += copied
    return {**spec, "templates": all_of} if met else spec


def _steps(template: Any) -> Iterator[dict[str, Any]]:
    """The steps and tasks of a template, and what runs after them."""
    fields = template if isinstance(template, dict) else {}
    groups = [group if isinstance(group, list) else [group] for group in _list(fields.get("steps"))]
    dag = fields.get("dag")
    groups.append(_list(dag.get("tasks")) if isinstance(dag, dict) else [])
    for step in (one for group in groups for one in group if isinstance(one, dict)):
        yield step
        hooks = step.get("hooks")
        yield from (one for one in (hooks.values() if isinstance(hooks, dict) else ()) if isinstance(one, dict))
        if isinstance(step.get("inline"), dict):
            yield from _steps(step["inline"])


def _renamed(template: Any, prefix: str) -> Any:
    """The template with the prefix before its name and before those that it calls in its own object."""
    if not isinstance(template, dict):
        return template

    def renamed(part: Any) -> Any:
        if isinstance(part, list):
            return [renamed(one) for one in part]
        if not isinstance(part, dict):
            return part
        calls = {name: f"{prefix}/{part[name]}" for name in ("template", "onExit") if isinstance(part.get(name), str)}
        inner = {name: renamed(part[name]) for name in ("inline", "hooks") if name in part}
        return {**part, **calls, **inner, **_called_in(part)}

    def _called_in(part: dict[str, Any]) -> dict[str, Any]:
        dag = part.get("dag")
        inner = {"steps": renamed(part["steps"])} if "steps" in part else {}
        if isinstance(dag, dict):
            inner["dag"] = {**dag, "tasks": renamed(dag.get("tasks"))}
        return inner

    return {**template, **_called_in(template), "name": f"{prefix}/{template.get('name')}"}


def _created(one: Document) -> Iterator[Document | Diagnostic]:
    """The objects that the resource templates of a Workflow create."""
    kind = _kind(one)
    fields = Fields(one.value)
    spec = fields
    for part in _path(kind):
        spec = spec.child(part)
    paused = spec.raw("suspend") is True or fields.child("spec").raw("suspend") is True
    templates = [one for one in spec.children("templates") if "resource" in one]
    if not templates or paused or fields.child("status").raw("phase") in _ENDED:
        return
    flow = Flow(spec, one.metadata.name)
    numbers: dict[str, int] = {}
    for (name, _), times in flow.numbers.items():
        numbers[name] = max(numbers.get(name, 0), times)
    for template in templates:
        resource, number = template.child("resource"), numbers.get(template.text("name"), 0)
        if number and resource.raw("action") in _CREATING and isinstance(resource.raw("manifest"), str):
            yield from _objects(one, flow, template, number)


def _objects(one: Document, flow: Flow, template: Fields, number: int) -> Iterator[Document | Diagnostic]:
    resource = template.child("resource")
    path = (*resource.path, "manifest")
    text = flow.filled(resource.text("manifest"), template.text("name"))
    if flow.overfilled:
        step = "give the object that it creates"
        yield one.located(Diagnostic("to fill in its parameters is too much work", step, path))
        return
    pay(len(text) // _CHARACTERS)
    try:
        found = list(read_yaml(text, one.file))
    except UnreadableError as error:
        step = "give the object that it creates, or the pods of the run (kubectl get pods -o yaml)"
        yield one.located(Diagnostic(f"creates an object that cannot be read: {error.message}", step, path))
        return
    for made in found:
        for value in _each(made.value, one, number):
            locate = Below(one.locate, *path)
            yield Document(one.file, locate(()), value, locate, creator="Workflow")


def _each(value: Any, one: Document, number: int) -> Iterator[Any]:
    """The object in the namespace of its Workflow; one whose name is generated as often as it is created at once."""
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if not isinstance(metadata, dict):
        yield value
        return
    own = Fields(one.value).child("metadata")
    metadata = {**({"namespace": own.raw("namespace")} if "namespace" in own else {}), **metadata}
    prefix = metadata.get("generateName")
    if number == 1 or "name" in metadata or not isinstance(prefix, str):
        yield {**value, "metadata": metadata}
        return
    for index in range(number):
        pay(_CREATED)
        yield {**value, "metadata": {**metadata, "name": f"{prefix}{index}"}}


def _size(value: Any) -> int:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(1 + _size(one) for one in parts)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
