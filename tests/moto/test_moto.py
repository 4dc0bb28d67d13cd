"""Every step that moto supports passes, with requests that AWS's models allow; what moto lacks is still lacking."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from botocore.parsers import ResponseParserError

from providers.errors import ProviderError
from tests.model_rules import CENSUS
from tests.moto.account import MotoAccount
from tests.moto.server import moto_server
from tests.moto.table import LACKING, SUPPORTED, Step


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with moto_server() as found:
        yield found


@pytest.fixture
def account(url: str) -> MotoAccount:
    return MotoAccount(url)


@pytest.mark.parametrize("step", SUPPORTED, ids=lambda step: step.name)
def test_the_adapter_on_moto(step: Step, account: MotoAccount) -> None:
    before = CENSUS.calls.total()
    step.run(account)
    assert CENSUS.calls.total() > before


@pytest.mark.parametrize("step", LACKING, ids=lambda step: step.name)
def test_what_moto_lacks(step: Step, account: MotoAccount) -> None:
    """The day moto gains a step, this fails: move the step into SUPPORTED."""
    try:
        step.run(account)
    except (AssertionError, ProviderError, ResponseParserError) as error:
        # What moto does not know at all is a page of HTML, which the adapter takes for a lost answer.
        if not isinstance(error, AssertionError) and "Internal Server Error" not in str(error):
            raise
    else:
        pytest.fail(f"moto has gained it ({step.instead} until now): move the step into SUPPORTED")
