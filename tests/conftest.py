"""How the tests run: property-based ones draw the same examples every time, so that a red run means a changed program.

`HYPOTHESIS_PROFILE=explore make test` looks for new ones; what it finds becomes a case of its own.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import settings

from tests import shipped_once

shipped_once.install()

from tests.model_rules import CENSUS  # noqa: E402  # what it imports finds the functions that were installed

# No test reads or leaves a file in the user's cache directory; those of the cache choose one.
os.environ["FORESLICE_CACHE_DIR"] = ""

# As in the commands: looking for garbage after every 700 objects costs a fifth of the tests' time.
gc.set_threshold(50_000, 10, 10)

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# structlog's default formats a traceback with all local variables, which takes seconds for each exception that a test
# provokes; `foreslice run` formats plain ones as well.
structlog.get_config()["processors"][-1].exception_formatter = structlog.dev.plain_traceback


def pytest_collection_finish() -> None:
    """The modules and the tests stay as long as the process; nobody looks for garbage among them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def requests_keep_to_the_models() -> Iterator[None]:
    """No test passes that sent AWS something its models refuse, whoever caught the error."""
    CENSUS.violations.clear()
    yield
    assert CENSUS.violations == []
