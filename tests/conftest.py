"""How the tests run: property-based ones draw the same examples every time, so that a red run means a changed program.

`HYPOTHESIS_PROFILE=explore make test` looks for new ones; what it finds becomes a case of its own.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
