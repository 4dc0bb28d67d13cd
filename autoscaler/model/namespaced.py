"""Objects of a namespace, by the key that the whole of Foreslice calls them by."""

from __future__ import annotations


class Namespaced:
    """What has a namespace and a name."""

    __slots__ = ()

    namespace: str
    name: str

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"
