"""`blocks find` shows what is on offer; `blocks buy` buys once, within the limit, and knows what it bought."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from autoscaler.cli.blocks.market import buy_block, find_blocks
from autoscaler.errors import BadInputError
from autoscaler.execution.purchases import SETTLES, Intent, PurchaseJournal, mark_of, purchase
from instance_catalog.dataclass import replace
from providers.aws.capacity import Reservations
from providers.aws.sales.market import BlockMarket
from providers.errors import AmbiguousError, QuotaError
from providers.market import CapacityOffer, CapacityQuery, PriceCeilingError
from tests.aws import Rig
from tests.fakes.ec2 import TIMEOUT_AFTER, TIMEOUT_BEFORE, refused
from tests.fakes.ec2.market import Segment
from tests.unit.cli.test_live_commands import documented

START = datetime(2026, 1, 5, 11, 30, tzinfo=UTC)  # the virtual clock begins on the first
TYPE = "p5.48xlarge"
QUERY = ["--type", TYPE, "--count", "4", "--hours", "48", "--region", "us-east-1"]


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    rig = Rig()
    for number, (zone, day, fee) in enumerate([("us-east-1a", 0, "7680.00"), ("us-east-1b", 3, "6144.00")], 1):
        starts_at = START + timedelta(days=day)
        segment = Segment(TYPE, zone, 4, starts_at, starts_at + timedelta(hours=48))
        rig.fake.account.market.sell(number, [segment], fee)
    monkeypatch.setattr("autoscaler.composition.aws.Aws", lambda *_, **__: rig.aws)
    monkeypatch.setattr("autoscaler.cli.blocks.market.SystemClock", lambda: rig.clock)
    return rig


@pytest.fixture
def market(rig: Rig) -> BlockMarket:
    return BlockMarket(rig.aws, Reservations(rig.aws, rig.clock, window=timedelta(minutes=5)))


@pytest.fixture
def offer(market: BlockMarket) -> CapacityOffer:
    return market.find(CapacityQuery(TYPE, 4, timedelta(hours=48)))[0]


def run(command: object, *arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments), catch_exceptions=True)  # type: ignore[arg-type]


def test_offers_come_with_the_price_of_an_accelerators_hour(rig: Rig) -> None:
    result = run(find_blocks, *QUERY)
    assert result.exit_code == 0, result.output
    head, first, second, _, legend, a, b = result.output.splitlines()
    assert head.split()[-1] == "ACCELERATOR/H"
    assert first.split()[-3:] == ["$7,680.00", "$40.00", "$5.00"]
    assert second.split()[-1] == "$4.00"
    assert "05 Jan … 10 Jan" in legend
    assert a == "us-east-1a  █▒▒···"
    assert b == "us-east-1b  ···█▒▒"


def test_offers_as_data(rig: Rig) -> None:
    found = json.loads(run(find_blocks, *QUERY, "-o", "json").output)
    assert [one["pricePerAcceleratorHour"] for one in found] == ["5.0000", "4.0000"]
    assert found[0]["startsAt"] == "2026-01-05T11:30:00+00:00"
    assert {*found[0], *found[0]["segments"][0]} == documented("blocks find")


def test_a_rack_has_the_price_of_its_accelerators(rig: Rig) -> None:
    segment = Segment("p6e-gb200.36xlarge", "us-east-1a", 18, START, START + timedelta(hours=24))
    rig.fake.account.market.sell(9, [segment], "17280.00", ultraserver="u-p6e-gb200x72")
    rack = ["--ultraserver", "u-p6e-gb200x72"]
    row = run(find_blocks, *rack).stdout.splitlines()[1]
    assert "1 × u-p6e-gb200x72" in row
    assert row.split()[-2:] == ["$40.00", "$10.00"]
    bought = run(buy_block, row.split()[0], *rack, "--max-price", "20000")
    assert "would buy 1 × u-p6e-gb200x72 in us-east-1a for 17280.00 USD" in bought.stdout


def test_nothing_on_offer_says_what_to_try(rig: Rig) -> None:
    assert "try fewer machines" in run(find_blocks, "--type", "p4d.24xlarge", "--hours", "24").output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--hours", "30", "--type", TYPE], "whole days", id="hours"),
        pytest.param(["--hours", "384", "--type", TYPE], "give --hours 336 or 504", id="more than two weeks"),
        pytest.param(["--type", TYPE, "--start", "2025-12-31"], "2025-12-31 has passed", id="too late"),
        pytest.param(["--type", TYPE, "--start", "2026-03-01"], "give a --start before 2026-02-26", id="too early"),
    ],
)
def test_a_wrong_question_is_told(rig: Rig, arguments: list[str], message: str) -> None:
    assert message in str(run(find_blocks, *arguments).exception)
    assert rig.fake.calls["DescribeCapacityBlockOfferings"] == 0


@pytest.mark.parametrize(
    "arguments",
    [pytest.param([], id="no type"), pytest.param(["--type", TYPE, "--ultraserver", "u-p6e-gb200x72"], id="both")],
)
def test_wrong_usage_is_told_as_of_every_command(rig: Rig, arguments: list[str]) -> None:
    result = run(find_blocks, *arguments)
    assert result.exit_code == 2
    assert "Give exactly one of --type and --ultraserver" in result.stderr
    assert rig.fake.calls["DescribeCapacityBlockOfferings"] == 0


def test_this_days_beginning_has_not_passed(rig: Rig) -> None:
    rig.clock.advance(timedelta(hours=3))
    assert run(find_blocks, *QUERY, "--start", f"{rig.clock.now():%Y-%m-%d}").exit_code == 0


@pytest.mark.parametrize(
    ("code", "step"),
    [
        pytest.param("InvalidParameterValue", "ask for a type that AWS sells in Capacity Blocks", id="not a block's"),
        pytest.param("InvalidInstanceType", "ask for a type that AWS sells in Capacity Blocks", id="no such type"),
        pytest.param("UnauthorizedOperation", "deploy/aws/buyer-policy.json", id="no permission"),
    ],
)
def test_a_refusal_is_told_to_a_buyer(rig: Rig, code: str, step: str) -> None:
    rig.fake.faults.inject("DescribeCapacityBlockOfferings", refused(code))
    assert step in str(run(find_blocks, *QUERY).exception)


def test_a_type_that_the_catalog_does_not_know_is_asked_for_all_the_same(rig: Rig) -> None:
    result = run(find_blocks, "--type", "p5.48xlage")
    assert "did you mean 'p5.48xlarge'?" in result.stderr
    assert rig.fake.calls["DescribeCapacityBlockOfferings"] == 1


def test_nothing_is_bought_without_yes(rig: Rig, offer: CapacityOffer, tmp_path: Path) -> None:
    journal = ["--journal", str(tmp_path / "bought.jsonl")]
    result = run(buy_block, offer.id, *QUERY, "--max-price", "8000", *journal)
    assert "would buy 4 × p5.48xlarge in us-east-1a for 7680.00 USD" in result.output
    assert rig.fake.account.holdings == {}
    assert rig.fake.calls["PurchaseCapacityBlock"] == 0


def test_what_was_bought_is_printed_as_the_block_that_holds_it(rig: Rig, offer: CapacityOffer, tmp_path: Path) -> None:
    arguments = [offer.id, *QUERY, "--max-price", "8000", "--yes", "--journal", str(tmp_path / "bought.jsonl")]
    result = run(buy_block, *arguments)
    assert result.exit_code == 0, result.output
    (holding,) = rig.fake.account.holdings
    block = yaml.safe_load(result.stdout)
    assert (block["kind"], block["spec"]["reservation"]) == ("CapacityBlock", holding)
    assert block["spec"]["startsAt"] == "2026-01-05T11:30:00Z"
    # The offer is gone from the market by now; whoever asks again gets the same block.
    rig.clock.advance(timedelta(minutes=1))
    again = run(buy_block, *arguments)
    assert (again.exit_code, again.stdout) == (0, result.stdout)
    assert f"# {offer.id} was bought before: {holding}" in again.stderr
    assert list(rig.fake.account.holdings) == [holding]


def test_a_purchase_whose_answer_was_lost_is_found_by_the_next_try(
    rig: Rig, offer: CapacityOffer, tmp_path: Path
) -> None:
    path = tmp_path / "bought.jsonl"
    arguments = [offer.id, *QUERY, "--max-price", "8000", "--yes", "--journal", str(path)]
    rig.fake.faults.inject("PurchaseCapacityBlock", TIMEOUT_AFTER)
    assert isinstance(run(buy_block, *arguments).exception, BadInputError)
    rig.clock.advance(timedelta(minutes=1))
    result = run(buy_block, *arguments)
    (holding,) = rig.fake.account.holdings
    assert yaml.safe_load(result.stdout)["spec"]["reservation"] == holding
    assert rig.fake.calls["PurchaseCapacityBlock"] == 1
    known = PurchaseJournal(path).last(mark_of(offer.id))
    assert known is not None
    assert known.outcome == holding


def test_a_death_between_note_and_purchase_is_told_and_then_repeated(
    rig: Rig, offer: CapacityOffer, tmp_path: Path
) -> None:
    path = tmp_path / "bought.jsonl"
    PurchaseJournal(path).write(Intent(mark_of(offer.id), offer.id, "7680.00", rig.clock.now().isoformat()))
    arguments = [offer.id, *QUERY, "--max-price", "8000", "--yes", "--journal", str(path)]
    rig.clock.advance(timedelta(minutes=1))
    early = run(buy_block, *arguments).exception
    assert "was tried 60 s ago, and its outcome is not known" in str(early)
    assert "ask again in 541 s" in str(early)
    rig.clock.advance(SETTLES)
    assert run(buy_block, *arguments).exit_code == 0
    assert rig.fake.calls["PurchaseCapacityBlock"] == 1


def test_a_block_that_was_never_paid_is_not_printed(rig: Rig, offer: CapacityOffer, tmp_path: Path) -> None:
    arguments = [offer.id, *QUERY, "--max-price", "8000", "--yes", "--journal", str(tmp_path / "bought.jsonl")]
    rig.fake.account.market.payment = None
    assert "not paid yet" in run(buy_block, *arguments).stderr
    rig.clock.advance(timedelta(hours=13))
    result = run(buy_block, *arguments)
    assert result.stdout == ""
    assert "the payment failed" in str(result.exception)


def test_an_offer_that_is_gone_is_told_with_the_region(rig: Rig, offer: CapacityOffer, tmp_path: Path) -> None:
    arguments = [*QUERY, "--max-price", "8000", "--yes", "--journal", str(tmp_path / "bought.jsonl")]
    gone = run(buy_block, "cb-nowhere", *arguments).exception
    assert "cb-nowhere is not on offer in us-east-1" in str(gone)
    # Somebody else is quicker, between the look and the purchase.
    rig.fake.faults.inject("PurchaseCapacityBlock", refused("InvalidCapacityBlockOfferingId.NotFound"))
    sold = run(buy_block, offer.id, *arguments).exception
    assert "`foreslice blocks find` lists what is on offer now" in str(sold)
    assert rig.fake.account.holdings == {}


def test_a_price_in_another_currency_is_not_compared_with_dollars(
    rig: Rig, offer: CapacityOffer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(BlockMarket, "find", lambda *_: (replace(offer, currency="CNY"),))
    arguments = [offer.id, *QUERY, "--max-price", "80000", "--yes", "--journal", str(tmp_path / "bought.jsonl")]
    assert "7680.00 CNY: --max-price is in USD" in str(run(buy_block, *arguments).exception)
    assert rig.fake.calls["PurchaseCapacityBlock"] == 0


def test_the_limit_is_kept(rig: Rig, offer: CapacityOffer) -> None:
    result = run(buy_block, offer.id, *QUERY, "--max-price", "7000", "--yes")
    assert "more than --max-price 7000" in str(result.exception)
    assert rig.fake.calls["PurchaseCapacityBlock"] == 0


@pytest.mark.parametrize("amount", ["cheap", "0", "-5", "nan", "inf"])
def test_a_limit_must_be_an_amount(rig: Rig, amount: str) -> None:
    assert run(buy_block, "cb-1", *QUERY, "--max-price", amount).exit_code == 2


class TestPurchase:
    def buy(self, rig: Rig, market: BlockMarket, offer: CapacityOffer, path: Path, ceiling: str = "8000") -> list[str]:
        journal = PurchaseJournal(path / "bought.jsonl")
        bought = purchase(market, journal, offer, ceiling=Decimal(ceiling), clock=rig.clock)
        return [one.id for one in bought]

    def test_a_repetition_finds_what_was_bought(
        self, rig: Rig, market: BlockMarket, offer: CapacityOffer, tmp_path: Path
    ) -> None:
        first = self.buy(rig, market, offer, tmp_path)
        rig.clock.advance(timedelta(minutes=1))
        assert self.buy(rig, market, offer, tmp_path) == first
        assert rig.fake.calls["PurchaseCapacityBlock"] == 1

    def test_a_lost_answer_does_not_buy_twice(
        self, rig: Rig, market: BlockMarket, offer: CapacityOffer, tmp_path: Path
    ) -> None:
        rig.fake.faults.inject("PurchaseCapacityBlock", TIMEOUT_AFTER)
        with pytest.raises(AmbiguousError):
            self.buy(rig, market, offer, tmp_path)
        rig.clock.advance(timedelta(minutes=1))
        assert self.buy(rig, market, offer, tmp_path) == list(rig.fake.account.holdings)
        assert rig.fake.calls["PurchaseCapacityBlock"] == 1

    def test_a_lost_request_is_repeated_only_after_a_while(
        self, rig: Rig, market: BlockMarket, offer: CapacityOffer, tmp_path: Path
    ) -> None:
        rig.fake.faults.inject("PurchaseCapacityBlock", TIMEOUT_BEFORE)
        with pytest.raises(AmbiguousError):
            self.buy(rig, market, offer, tmp_path)
        rig.clock.advance(timedelta(minutes=1))
        with pytest.raises(BadInputError, match="its outcome is not known"):
            self.buy(rig, market, offer, tmp_path)
        rig.clock.advance(SETTLES)
        assert self.buy(rig, market, offer, tmp_path) == list(rig.fake.account.holdings)

    def test_a_refusal_closes_the_journal(
        self, rig: Rig, market: BlockMarket, offer: CapacityOffer, tmp_path: Path
    ) -> None:
        rig.fake.faults.inject("PurchaseCapacityBlock", refused("InstanceLimitExceeded"))
        with pytest.raises(QuotaError):
            self.buy(rig, market, offer, tmp_path)
        known = PurchaseJournal(tmp_path / "bought.jsonl").last(mark_of(offer.id))
        assert known is not None
        assert known.outcome.startswith("not bought")
        assert len(self.buy(rig, market, offer, tmp_path)) == 1

    def test_the_ceiling_holds_below_the_command_too(
        self, rig: Rig, market: BlockMarket, offer: CapacityOffer, tmp_path: Path
    ) -> None:
        with pytest.raises(PriceCeilingError, match=r"costs 7680\.00 USD"):
            self.buy(rig, market, offer, tmp_path, ceiling="1")
        assert rig.fake.calls["PurchaseCapacityBlock"] == 0


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        pytest.param(lambda path: path.write_text("{}\n"), "cannot be read", id="not ours"),
        pytest.param(lambda path: path.write_text("nonsense\n"), "cannot be read", id="no JSON"),
        pytest.param(lambda path: path.mkdir(), "cannot be read", id="a folder"),
    ],
)
def test_a_journal_that_cannot_be_read_stops_everything(
    tmp_path: Path, prepare: Callable[[Path], object], message: str
) -> None:
    prepare(tmp_path / "journal")
    with pytest.raises(BadInputError, match=message):
        PurchaseJournal(tmp_path / "journal").last("m")


def test_the_last_line_of_a_mark_counts(tmp_path: Path) -> None:
    journal = PurchaseJournal(tmp_path / "deep" / "journal")
    assert journal.last("m") is None
    for outcome in ("", "cr-1"):
        journal.write(Intent("m", "cb-1", "1", "2026-01-01T00:00:00+00:00", outcome))
    journal.write(Intent("n", "cb-2", "1", "2026-01-01T00:00:00+00:00"))
    found = journal.last("m")
    assert found is not None
    assert found.outcome == "cr-1"
