"""The life of a controller under faults: after each death the next one begins with empty memory."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from autoscaler.cluster.api import ApiError
from autoscaler.errors import ConfigurationError
from autoscaler.loop.loop import Tick
from autoscaler.simulation.simulation import Simulation
from providers.errors import ProviderError
from tests.crash.life import CrashError
from tests.faults import invariants

# The number of reconciles in a row that may end early: each mishap ends one, and there are fewer.
MOST_CUT: Final = 100


def live(simulation: Simulation, by: timedelta, *, look: Callable[[Tick], None], restart: Callable[[], None]) -> None:
    """Let time pass. `look` sees every reconcile; `restart` follows a death, and an error that ends a reconcile."""
    end = simulation.clock.now() + by
    for cut in range(1, MOST_CUT + 1):
        try:
            simulation.run(end, look)
            return
        except CrashError:
            restart()
        except (ApiError, ConfigurationError, ProviderError) as error:
            if cut == MOST_CUT:
                raise AssertionError(invariants.cut_short(error, rounds=cut)) from error
            restart()
        except Exception as error:
            raise AssertionError(invariants.ended_by(error)) from error
    raise AssertionError("the controller does not come up again")
