"""What an operation of the fake is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tests.fakes.ec2.account import Account
from tests.fakes.ec2.errors import ApiError, unknown_to_the_fake
from tests.fakes.ec2.requests import Params

Answer: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Operation:
    """`run` answers a call; `takes` are the top-level parameters that it heeds, separated by blanks.

    Other parameters are refused, because ignoring them would be guessing. `dry_run` is left to operations that check
    their parameters first.
    """

    run: Callable[[Account, Params], Answer]
    takes: str = ""

    def __call__(self, account: Account, params: Params, *, name: str) -> Answer:
        heeded = {*self.takes.split(), "DryRun"}
        for parameter in params.keys() - heeded:
            raise unknown_to_the_fake(f"the parameter {parameter} of {name}")
        if params.get("DryRun") and "DryRun" not in self.takes.split():
            raise dry_run()
        return self.run(account, params)


def dry_run() -> ApiError:
    """EC2 says that a dry run would have succeeded with an error."""
    text = "Request would have succeeded, but DryRun flag is set."
    return ApiError("DryRunOperation", text, status=412)
