"""The simulator's answers from processes that have seen no other case.

What is remembered from one case to the next (views of devices, programs) can make a difference that no case shows on
its own. Such a difference counts, but it is neither made small nor recorded: alone, nothing would differ.
"""

from __future__ import annotations

from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import TracebackType

from autoscaler.cel.program import compile_selector
from tests.oracle.comparing.comparison import RAISED, Kind
from tests.oracle.kinds import KINDS
from tests.oracle.upstream import RELEASES, Given, Json, Release

_FORK = get_context("fork")  # what was imported and read before the first case is shared, which saves seconds a case


class Alone:
    """Context manager around a process that forks one for each case. Enter it before the first case."""

    def __enter__(self) -> Alone:
        self._answers, theirs = _FORK.Pipe()
        self._process = _FORK.Process(target=_serve, args=(theirs,))
        self._process.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._answers.send(None)
        self._process.join()

    def simulated(self, kind: Kind, case: Json, release: Release) -> Given:
        """The answer to a case."""
        minor = next(name for name, known in RELEASES.items() if known is release)
        self._answers.send((kind.name, case, minor))
        found: Given = self._answers.recv()
        return found


def _serve(asked: Connection) -> None:
    for release in RELEASES.values():
        compile_selector("true", release.profile)  # reads the grammar
    while (question := asked.recv()) is not None:
        answers, theirs = _FORK.Pipe(duplex=False)
        process = _FORK.Process(target=_answer, args=(theirs, *question))
        process.start()
        theirs.close()
        try:
            asked.send(answers.recv())
        except EOFError:
            asked.send(Given({"outcome": RAISED, "error": "the process ended"}, 0))
        process.join()
        answers.close()


def _answer(to: Connection, kind: str, case: Json, minor: str) -> None:
    to.send(KINDS[kind].answered(case, RELEASES[minor]))
