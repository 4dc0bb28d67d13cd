"""Catalog files → Catalog. The only place of the catalog that reads files.

Layers, later ones override: the data shipped with the package, then each directory given, in order. Either everything
is right, or CatalogError says everything that is wrong; a half-read catalog is never used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from instance_catalog import attachment, build
from instance_catalog.build import Mismatch
from instance_catalog.catalog import Catalog
from instance_catalog.findings import Findings, dotted
from instance_catalog.instance_type import Accelerator, InstanceType
from instance_catalog.node_reservation import NOTHING_RESERVED, NodeReservation
from instance_catalog.overlay import EMPTY, Layered, Origin, Source, Written, layered, origins, value_at
from instance_catalog.schema import AcceleratorEntry, CatalogFile, InstanceTypeEntry, NodeEntry
from instance_catalog.yaml_text import YamlTextError, read

DATA: Final = Path(__file__).parent / "data"
# What else lies in data/ (drivers, MIG tables) has other shapes and other readers.
_SHIPPED: Final = ("accelerators.yaml", "nodes.yaml", "aws/*.yaml", "gcp/*.yaml")
_SUFFIXES: Final = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class _Document:
    """A file that has the shape of a catalog file."""

    name: str
    raw: Mapping[str, Any]
    file: CatalogFile


_Layer: TypeAlias = Sequence[_Document]


@dataclass(frozen=True, slots=True)
class Corrections:
    """What a catalog file would hold, said elsewhere (an InstanceTypeOverlay): `name` and `line` tell where."""

    name: str
    line: int
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """A value as one file gives it."""

    file: str
    line: int
    value: Any


@dataclass(frozen=True, slots=True)
class ValueOrigin:
    """Where a value of an entry comes from: the place that won, and those it overrides, the nearest first.

    `entry` is "types" or "accelerators", `field` a path such as "pci.root".
    """

    entry: str
    field: str
    won: Place
    overridden: tuple[Place, ...]


def load_catalog(*, extra_dirs: Sequence[Path] = (), corrections: Sequence[Corrections] = ()) -> Catalog:
    """The shipped catalog with the files below `extra_dirs` (YAML, recursively, in the order of their names) over it.

    `corrections` come last, as one layer. Raises CatalogError with every defect of every file.
    """
    findings = Findings()
    layers = _layers(extra_dirs, corrections, findings)
    accelerators = _accelerators(layers, findings)
    reservations = _reservations(layers, findings)
    types = _types(layers, accelerators, reservations, findings)
    findings.raise_if_any()
    return Catalog.of(types, accelerators.values())


def value_origins(name: str, *, extra_dirs: Sequence[Path] = ()) -> tuple[ValueOrigin, ...]:
    """Which file gave each value of a type and of its accelerator model; () for a name that is not in the catalog.

    Raises CatalogError as `load_catalog` does.
    """
    findings = Findings()
    layers = _layers(extra_dirs, (), findings)
    models = _merged([_written(layer, "accelerators", "key", findings) for layer in layers], "accelerator", findings)
    accelerators = _accelerators(layers, findings)
    entry = _merged(_written_layers(layers, accelerators, findings), "instance type", findings).get(name, EMPTY)
    findings.raise_if_any()
    key = entry.merged.get("accelerator", {}).get("model", "")
    return tuple(
        _value_origin(section, origin, findings)
        for section, found in (("types", entry), ("accelerators", models.get(key, EMPTY)))
        for origin in origins(found)
    )


def _value_origin(section: str, origin: Origin, findings: Findings) -> ValueOrigin:
    places = [
        Place(
            source.file, findings.line(source.file, (*source.path, *origin.path)), value_at(source.value, origin.path)
        )
        for source in reversed(origin.sources)
    ]
    return ValueOrigin(section, dotted(origin.path), places[0], tuple(places[1:]))


def _layers(extra_dirs: Sequence[Path], corrections: Sequence[Corrections], findings: Findings) -> list[_Layer]:
    shipped = sorted(path for pattern in _SHIPPED for path in DATA.glob(pattern))
    return [
        _documents(shipped, findings),
        *(_documents(_files_below(d, findings), findings) for d in extra_dirs),
        [document for one in corrections if (document := _corrected(one, findings)) is not None],
    ]


def _files_below(directory: Path, findings: Findings) -> list[Path]:
    files = sorted(path for path in directory.rglob("*") if path.suffix in _SUFFIXES and path.is_file())
    if not files:
        found = "no YAML file" if directory.is_dir() else "no such directory"
        findings.add_at(str(directory), 1, found=found, allowed="a directory with catalog files (*.yaml)")
    return files


def _documents(files: Iterable[Path], findings: Findings) -> _Layer:
    read_files = (_document(path, findings) for path in files)
    return [document for document in read_files if document is not None]


def _document(path: Path, findings: Findings) -> _Document | None:
    name = str(path.relative_to(DATA.parent)) if path.is_relative_to(DATA) else str(path)
    try:
        text = path.read_text(encoding="utf-8")
        raw = read(text)
    except (OSError, UnicodeDecodeError) as error:
        findings.add_at(name, 1, found=f"a file that cannot be read ({error})", allowed="readable UTF-8 text")
        return None
    except YamlTextError as error:
        findings.add_at(name, error.line, found=str(error), allowed="YAML, every key once")
        return None
    findings.remember(name, text)
    file = findings.checked_file(CatalogFile, {} if raw is None else raw, name)
    return _Document(name, raw or {}, file) if file is not None else None


def _corrected(corrections: Corrections, findings: Findings) -> _Document | None:
    findings.remember_line(corrections.name, corrections.line)
    file = findings.checked_file(CatalogFile, corrections.content, corrections.name)
    return _Document(corrections.name, corrections.content, file) if file is not None else None


def _accelerators(layers: Sequence[_Layer], findings: Findings) -> dict[str, Accelerator]:
    written = [_written(layer, "accelerators", "key", findings) for layer in layers]
    found: dict[str, Accelerator] = {}
    for key, layers_of in _merged(written, "accelerator", findings).items():
        entry = findings.checked_entry(AcceleratorEntry, layers_of, f"accelerator {key}")
        if entry is not None:
            found[key] = build.accelerator_of(entry)
    return found


def _reservations(layers: Sequence[_Layer], findings: Findings) -> dict[str, NodeReservation]:
    written = [_written(layer, "nodes", "cloud", findings) for layer in layers]
    found: dict[str, NodeReservation] = {}
    for cloud, layers_of in _merged(written, "nodes of", findings).items():
        entry = findings.checked_entry(NodeEntry, layers_of, f"nodes of {cloud}")
        if entry is not None and not _noted(
            build.reservation_mismatches(entry), layers_of, f"nodes of {cloud}", findings
        ):
            found[cloud] = build.reservation_of(entry)
    return found


def _types(
    layers: Sequence[_Layer],
    accelerators: Mapping[str, Accelerator],
    reservations: Mapping[str, NodeReservation],
    findings: Findings,
) -> list[InstanceType]:
    written = _written_layers(layers, accelerators, findings)
    found: list[InstanceType] = []
    for name, layers_of in _merged(written, "instance type", findings).items():
        title = f"instance type {name}"
        homeless = _noted(build.unknown_accelerator(layers_of.merged, accelerators), layers_of, title, findings)
        entry = findings.checked_entry(InstanceTypeEntry, layers_of, title)
        contradictory = entry is not None and _noted(build.mismatches(entry), layers_of, title, findings)
        if entry is not None and not homeless and not contradictory:
            reservation = reservations.get(entry.cloud, NOTHING_RESERVED)
            origin = layers_of.sources[-1].file
            found.append(build.instance_type_of(entry, accelerators, reservation=reservation, origin=origin))
    return found


def _noted(mismatches: Iterable[Mismatch], layers_of: Layered, title: str, findings: Findings) -> bool:
    """Whether there were mismatches; they are among the findings then."""
    wrong = list(mismatches)
    for one in wrong:
        findings.add_in(layers_of, one.path, entry=title, found=one.found, allowed=one.allowed, hint=one.hint)
    return bool(wrong)


def _written(layer: _Layer, section: Literal["accelerators", "nodes"], field: str, findings: Findings) -> list[Written]:
    """The entries of one section in all files of a layer."""
    return [
        entry
        for document in layer
        for index, raw in enumerate(document.raw.get(section, ()))
        for entry in _named(raw, field, Source(document.name, (section, index), raw), findings)
    ]


def _written_layers(
    layers: Sequence[_Layer], accelerators: Mapping[str, Accelerator], findings: Findings
) -> list[list[Written]]:
    """The types that each layer writes."""
    return [
        [entry for document in layer for entry in _written_types(document, accelerators, findings)] for layer in layers
    ]


def _written_types(
    document: _Document, accelerators: Mapping[str, Accelerator], findings: Findings
) -> Iterator[Written]:
    """The types of one file: what the file says for all of them, then what it says for each."""
    file, name = document.file, document.name
    head = {"cloud": file.cloud} if file.cloud is not None else {}
    common = (
        Source(name, (), {**head, "provenance": file.provenance}),
        Source(name, ("defaults",), _with_full_prices(file.defaults, file)),
    )
    for index, raw in enumerate(file.types):
        own = Source(name, ("types", index), _with_full_prices(raw, file))
        for type_name, sources in _named(raw, "name", own, findings):
            yield type_name, (*common, *sources)
    for type_name, sources in attachment.expanded(file, document.raw, name, accelerators):
        yield type_name, (*common, *sources)


def _named(raw: Mapping[str, Any], field: str, source: Source, findings: Findings) -> Iterator[Written]:
    """The entry with its name; a defect if it has none, since nothing can be merged then."""
    name = raw.get(field)
    if isinstance(name, str):
        yield name, (source,)
    else:
        findings.add(source.file, source.path, field=field, found=repr(name), allowed="the name of the entry, as text")


def _merged(layers: Iterable[Iterable[Written]], noun: str, findings: Findings) -> dict[str, Layered]:
    """Entries of all layers by name. Within a layer a name may appear once."""
    table: dict[str, Layered] = {}
    for layer in layers:
        first: dict[str, Source] = {}
        for name, sources in layer:
            own = sources[-1]
            if name in first:
                found = f"a second entry of this name (the other one is in {first[name].file})"
                findings.add(own.file, own.path, entry=f"{noun} {name}", found=found, allowed="one entry per layer")
                continue
            first[name] = own
            table[name] = layered(sources, onto=table.get(name, EMPTY))
    return table


def _with_full_prices(raw: Mapping[str, Any], file: CatalogFile) -> Mapping[str, Any]:
    """Bare prices completed with the region and date that the file gives for them."""
    prices = raw.get("prices")
    if file.prices_as_of is None or not isinstance(prices, Mapping):
        return raw
    as_of = {"region": file.prices_as_of.region, "date": file.prices_as_of.date}
    full = {
        kind: {"usdPerHour": price, **as_of} if isinstance(price, str | int) else price
        for kind, price in prices.items()
    }
    return {**raw, "prices": full}
