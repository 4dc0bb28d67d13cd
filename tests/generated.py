"""Files that are derived from code: written by `make generate`, compared by `make lint`.

Each module that derives something has `generated_files() -> dict[Path, str]`, with paths relative to the repository.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def expected() -> dict[Path, str]:
    """Every generated file with the text it must have."""
    from tests import (
        architecture_reference,
        catalog_schema,
        command_reference,
        custom_resources,
        dashboard,
        dra_reference,
        image_requirements,
        lifecycle_reference,
        metrics_reference,
        provider_reference,
        settings_reference,
        values_schema,
    )

    files: dict[Path, str] = {}
    sources = (
        architecture_reference,
        catalog_schema,
        command_reference,
        custom_resources,
        dashboard,
        dra_reference,
        image_requirements,
        lifecycle_reference,
        metrics_reference,
        provider_reference,
        settings_reference,
        values_schema,
    )
    for source in sources:
        files.update(source.generated_files())
    return files


def main(arguments: list[str]) -> int:
    """Write the files, or with --check say which are stale; exit 1 then."""
    stale = [
        path
        for path, text in expected().items()
        if not (ROOT / path).exists() or (ROOT / path).read_text(encoding="utf-8") != text
    ]
    if "--check" in arguments:
        for path in stale:
            sys.stderr.write(f"{path} is stale: run `make generate` and commit the result\n")
        return 1 if stale else 0
    for path in stale:
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(expected()[path], encoding="utf-8")
        sys.stdout.write(f"wrote {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
