"""One plain line over all test suites of a CI run, from their JUnit files."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree


def main(paths: list[str]) -> int:
    """Print "N passed, N failed, N skipped"; exit 1 unless something passed and nothing failed."""
    total = failed = skipped = 0
    for path in paths:
        for suite in ElementTree.parse(path).iter("testsuite"):
            total += int(suite.get("tests", 0))
            failed += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            skipped += int(suite.get("skipped", 0))
    passed = total - failed - skipped
    sys.stdout.write(f"{passed} passed, {failed} failed, {skipped} skipped\n")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
