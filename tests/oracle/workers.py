"""Cases in several processes, each with an upstream of its own that answers one after the other."""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from time import monotonic

from tests.oracle.comparing.comparison import Kind, compare
from tests.oracle.kinds import KINDS
from tests.oracle.tally import Tally
from tests.oracle.upstream import RELEASES, OracleError

_FORK = get_context("fork")
_MOST_MEMORY = 4 << 30  # bytes; an evaluation that wants more ends with an exception, which is a difference
_MOST_DIFFERING = 25  # per process: the rest is mostly the same again


def counted(kind: Kind, minor: str, seeds: Sequence[str], *, until: float, workers: int) -> Tally:
    """The cases of the seeds, as many as there is time for (`until` in seconds of the monotonic clock)."""
    kind.program(RELEASES[minor]).build()
    running = []
    for index in range(max(1, workers)):
        ours, theirs = _FORK.Pipe(duplex=False)
        process = _FORK.Process(target=_work, args=(theirs, kind.name, minor, seeds[index::workers], until))
        process.start()
        theirs.close()
        running.append((process, ours))
    tally = Tally()
    for process, ours in running:
        try:
            tally.merge(ours.recv())
        except EOFError:
            raise OracleError("a process of the run ended early; its error is above") from None
        process.join()
    return tally


def _work(to: Connection, name: str, minor: str, seeds: Sequence[str], until: float) -> None:
    kind, release, tally = KINDS[name], RELEASES[minor], Tally()
    with kind.program(release) as upstream:
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
        for seed in seeds:
            if monotonic() > until or len(tally.differing) >= _MOST_DIFFERING:
                break
            before = len(tally.differing)
            try:
                tally.add(seed, compare(kind, kind.draw(seed), release, upstream))
            except Exception:
                sys.stdout.write(f"failed at seed {seed}\n")
                raise
            for _, text in tally.differing[before:]:
                sys.stdout.write(f"  differs, seed {seed}: {text}\n")
                sys.stdout.flush()
    to.send(tally)
