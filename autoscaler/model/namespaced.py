"""Namespaced objects, with the key that all of Foreslice uses for them."""

from __future__ import annotations


class Namespaced:
    """An object with a namespace and a name."""

    __slots__ = ()

    namespace: str
    name: str

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"
