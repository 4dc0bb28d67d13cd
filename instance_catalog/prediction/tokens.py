"""The names of groups of values that are unknown before launch.

A RuntimeOnly token's group begins with its scope:

    node:…      exists only at run time, differs from node to node; `concrete.for_node` makes it node=NAME:…
    unit:…      exists only at run time, the same on all nodes of a capacity unit (placement group, NVLink domain)
    catalog:…   could be known, but the catalog has no such fact; never scoped to a node

and ends with the kind of value that it represents ("…/uuid"), from which `concrete` makes a value. Must not know
drivers.
"""

from __future__ import annotations

from typing import Final

from instance_catalog.kubernetes.resource_slice import AttributeKind, RuntimeOnly

NODE: Final = "node"
UNIT: Final = "unit"
CATALOG: Final = "catalog"


def on_node(kind: AttributeKind, *path: str) -> RuntimeOnly:
    """A value of one node: on_node("string", "gpu-0", "uuid")."""
    return RuntimeOnly(kind, f"{NODE}:{'/'.join(path)}")


def of_unit(kind: AttributeKind, *path: str) -> RuntimeOnly:
    """A value that all nodes of a capacity unit share: of_unit("string", "nvlink-domain", "clique")."""
    return RuntimeOnly(kind, f"{UNIT}:{'/'.join(path)}")


def catalog_gap(kind: AttributeKind, *path: str, one_of: tuple[str, ...] = ()) -> RuntimeOnly:
    """A fact that the catalog lacks: catalog_gap("string", "rtx-pro-4500", "productName"); it is one of `one_of`."""
    return RuntimeOnly(kind, f"{CATALOG}:{'/'.join(path)}", one_of)


def scoped(token: RuntimeOnly, node_name: str) -> RuntimeOnly:
    """The token of this node: tokens of two nodes differ unless a capacity unit or the catalog is their scope."""
    if scope_of(token) != NODE:
        return token
    return RuntimeOnly(token.kind, f"{NODE}={node_name}:{token.group.partition(':')[2]}", token.one_of)


def scope_of(token: RuntimeOnly) -> str:
    """NODE, UNIT or CATALOG."""
    return token.group.partition(":")[0].partition("=")[0]
