"""`foreslice blocks find` and `foreslice blocks buy`: lists capacity blocks on offer, and buys one for a user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final

import click

from autoscaler.cli.blocks.offers import COLUMNS, entries, picture, rows
from autoscaler.cli.common.commands import Command, as_input_error
from autoscaler.cli.common.output import output_option, print_data, print_table, yaml_text
from autoscaler.clock import SystemClock
from autoscaler.errors import BadInputError
from autoscaler.execution.purchases import PurchaseJournal, purchase, yielded
from autoscaler.kube.custom.capacity_block import write_capacity_block
from autoscaler.kube.custom.schema import moment
from autoscaler.model.capacity import CapacityBlock
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.kubernetes.labels import CAPACITY_BLOCK
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.spelling import did_you_mean
from instance_catalog.types.instance_type import InstanceType
from providers.contract import Clock, Reservation
from providers.market import CapacityMarket, CapacityOffer, CapacityQuery, PriceCeilingError

_JOURNAL = Path("~/.local/state/foreslice/purchases.jsonl")


def _moment(ctx: click.Context, param: click.Parameter, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return moment(text if "T" in text else f"{text}T00:00:00Z")
    except ValueError as error:
        raise click.BadParameter(
            f"{error}; a date such as 2027-01-31 is taken as its first moment", ctx, param
        ) from error


def _dollars(ctx: click.Context, param: click.Parameter, text: str) -> Decimal:
    try:
        amount = Decimal(text.removeprefix("$").replace(",", ""))
    except InvalidOperation as error:
        raise click.BadParameter(f"{text!r} is not an amount: write it like 25000 or 25000.50", ctx, param) from error
    if not amount.is_finite() or amount <= 0:
        raise click.BadParameter("the limit must be more than zero", ctx, param)
    return amount


def query_options(command: Command) -> Command:
    """Adds the options for the wanted capacity and its place."""
    for decorate in (
        click.option("--profile", default="", metavar="NAME", help="AWS profile. [default: as the environment says]"),
        click.option("--region", default="", metavar="NAME", help="[default: as the environment says]"),
        click.option("--all-zones", is_flag=True, help="Also zones that the account has not opted into."),
        click.option("--within", default=14, show_default=True, metavar="DAYS", type=click.IntRange(1, 56)),
        click.option(
            "--start", callback=_moment, metavar="TIME", help="Not before this. [default: as soon as possible]"
        ),
        click.option("--hours", default=24, show_default=True, type=click.IntRange(24, 4368), help="Multiples of 24."),
        click.option("--count", default=1, show_default=True, type=click.IntRange(1, 64), help="Machines, or racks."),
        click.option(
            "--ultraserver",
            default="",
            metavar="TYPE",
            help="Buy whole racks, such as u-p6e-gb200x72, instead of machines of a type.",
        ),
        click.option("--type", "instance_type", default="", metavar="TYPE", help="Such as p5.48xlarge."),
    ):
        command = decorate(command)
    return command


@click.command("find")
@query_options
@click.option("--workload", type=click.Choice(["BATCH", "SERVING"]), help="For TPUs, if Google requires it.")
@output_option()
def find_blocks(output: str, region: str, profile: str, workload: str | None, **asked: Any) -> None:
    """Buys nothing.

    The chart below the table shows, for each zone, the days on which offers start. AWS limits such requests: ten in a
    row, then one every seven seconds. For a machine type of Google Cloud, give --region: Google recommends one window
    of calendar mode, without a price, and the command prints the gcloud command that reserves it. TPUs are reserved in
    chips; the command requests the chips of all machines.

    \b
    Examples:
      foreslice blocks find --type p5.48xlarge --count 4 --hours 48
      foreslice blocks find --type a3-highgpu-8g --count 4 --hours 168 --region us-central1
      foreslice blocks find --type ct6e-standard-4t --count 4 --hours 48 --region us-east5 --workload BATCH
      foreslice blocks find --type p5en.48xlarge --hours 168 --start 2027-02-01 --within 28
    """
    clock, types = SystemClock(), load_catalog().types
    if asked["instance_type"] and asked["instance_type"] not in types:
        # The cloud may sell what the catalog does not know yet.
        step = did_you_mean(asked["instance_type"], types, "`foreslice catalog list` shows what it has")
        click.echo(f"note: the catalog has no {asked['instance_type']}; {step}", err=True)
    if _is_googles(asked["instance_type"], types):
        if profile or asked["all_zones"]:
            raise click.UsageError("--profile and --all-zones are for AWS.")
        query = replace(_query(clock, **asked), workload=workload or "")
        find_calendar(query, region=region, clock=clock, output=output)
        return
    if workload:
        raise click.UsageError("--workload is for machine types of Google Cloud with TPUs.")
    from autoscaler.composition.aws import aws_market

    market = aws_market(region, profile, clock)
    offers = _found(market, clock, **asked)
    if output != "table":
        print_data(entries(offers, types), output)
        return
    if not offers:
        step = "try fewer machines, other hours, --within more days or another --region"
        click.echo(f"nothing is on offer in {market.aws.region}; {step}")
        return
    print_table(COLUMNS, rows(offers, types))
    click.echo()
    for line in picture(offers):
        click.echo(line)


def _is_googles(name: str, types: Mapping[str, InstanceType]) -> bool:
    """True if a machine type is one of Google Cloud. Of types that are not in the catalog, AWS's have a dot."""
    known = types.get(name)
    return known.cloud == "gcp" if known is not None else bool(name) and "." not in name


@click.command("buy")
@click.argument("offer_id")
@query_options
@click.option("--max-price", required=True, callback=_dollars, metavar="USD", help="Buy only if it costs no more.")
@click.option("--yes", is_flag=True, help="Buy. Without this flag the command only prints what it would do.")
@click.option(
    "--pool",
    default="gpu",
    show_default=True,
    metavar="NAME",
    help="Pool in the CapacityBlock that the command prints.",
)
@click.option("--journal", default=str(_JOURNAL), show_default=True, metavar="FILE", help="File with all purchases.")
def buy_block(
    *,
    offer_id: str,
    max_price: Decimal,
    yes: bool,
    pool: str,
    journal: str,
    region: str,
    profile: str,
    **asked: Any,
) -> None:
    """Give the same options as to `blocks find`.

    A purchase is paid in advance and CANNOT BE CANCELLED. The command writes the purchase to the journal before it
    buys. If you repeat the command, it prints what was bought and does not buy again. The controller never buys.

    \b
    Example:
      foreslice blocks buy cb-0123456789abcdef0 --type p5.48xlarge --count 4 --hours 48 --max-price 8000 --yes
    """
    clock = SystemClock()
    from autoscaler.composition.aws import aws_market

    market = aws_market(region, profile, clock)
    notes = PurchaseJournal(Path(journal).expanduser())
    with as_input_error():
        before = yielded(market, notes, offer_id, clock=clock)
    if before:
        click.echo(f"# {offer_id} was bought before: {_ids(before)}", err=True)
        _print(before, pool)
        return
    offer = next((found for found in _found(market, clock, **asked) if found.id == offer_id), None)
    if offer is None:
        step = "give the options it was found with; `foreslice blocks find` lists what is on offer now"
        raise BadInputError(f"{offer_id} is not on offer in {market.aws.region}, or not for this query", next_step=step)
    what = _affordable(offer, max_price)
    if not yes:
        click.echo(f"would buy {what}, from {offer.starts_at:%Y-%m-%d %H:%MZ} to {offer.ends_at:%Y-%m-%d %H:%MZ}")
        click.echo("nothing was bought; add --yes to buy. It is paid in advance and cannot be cancelled.")
        return
    try:
        with as_input_error():
            bought = purchase(market, notes, offer, ceiling=max_price, clock=clock)
    except PriceCeilingError as error:
        raise BadInputError(str(error), next_step="nothing was bought") from error
    click.echo(f"# bought {what}: {_ids(bought)}", err=True)
    _print(bought, pool)


def _affordable(offer: CapacityOffer, max_price: Decimal) -> str:
    """A description of the purchase. Raises BadInputError if it costs more than `max_price`, or cannot be compared."""
    what = (
        f"{offer.count} × {offer.ultraserver or offer.instance_type} in {offer.zone} for {offer.price} {offer.currency}"
    )
    if offer.currency != "USD":
        raise BadInputError(f"{what}: --max-price is in USD", next_step="nothing was bought; buy it at AWS's console")
    if offer.price > max_price:
        raise BadInputError(f"{what}: more than --max-price {max_price}", next_step="nothing was bought")
    return what


def _ids(bought: Iterable[Reservation]) -> str:
    return ", ".join(f"{one.id} ({one.note})" if one.note else one.id for one in bought)


def _print(bought: Iterable[Reservation], pool: str) -> None:
    """Prints the CapacityBlocks for the bought reservations, for kubectl."""
    manifests = [write_capacity_block(_block(one, pool)) for one in bought]
    click.echo("---\n".join(yaml_text(manifest) for manifest in manifests), nl=False)


def _found(market: CapacityMarket, clock: Clock, **asked: Any) -> tuple[CapacityOffer, ...]:
    query = _query(clock, **asked)
    with as_input_error():
        return market.find(market.validate(query, clock.now()))


def _query(
    clock: Clock,
    *,
    instance_type: str,
    ultraserver: str,
    count: int,
    hours: int,
    start: datetime | None,
    within: int,
    all_zones: bool,
) -> CapacityQuery:
    if bool(instance_type) == bool(ultraserver):
        raise click.UsageError("Give exactly one of --type and --ultraserver, such as --type p5.48xlarge.")
    now = clock.now()
    earliest = max(start or now, now)
    if start is not None and start.date() < now.date():
        raise BadInputError(f"--start {start:%Y-%m-%d} has passed", next_step="leave it out for as soon as possible")
    return CapacityQuery(
        instance_type=instance_type,
        count=count,
        lasts=timedelta(hours=hours),
        earliest=earliest,
        latest=earliest + timedelta(days=within),
        ultraserver=ultraserver,
        every_zone=all_zones,
    )


def _block(reservation: Reservation, pool: str) -> CapacityBlock:
    """The CapacityBlock that holds a reservation."""
    if reservation.ends_at is None:
        step = f"it was bought: look at it with `aws ec2 describe-capacity-reservations`, id {reservation.id}"
        raise BadInputError(f"reservation {reservation.id} has no end, so it is not a block", next_step=step)
    return CapacityBlock(
        name=reservation.id,
        instance_type=reservation.instance_type,
        zone=reservation.zone,
        count=max(reservation.count, 1),
        starts_at=reservation.starts_at,
        ends_at=reservation.ends_at,
        pool=pool,
        reservation=reservation.id,
        taint=Taint(CAPACITY_BLOCK, reservation.id, "NoSchedule"),
    )


_COLUMNS: Final = ("zone", "starts", "ends", "hours", "count")


def find_calendar(query: CapacityQuery, *, region: str, clock: Clock, output: str) -> None:
    """Print what Google recommends, and the command that reserves it. Raises BadInputError."""
    if not region:
        raise BadInputError("calendar capacity is found region by region", next_step="give --region, as us-central1")
    # Needs google-cloud-compute; `--help` works without it.
    from autoscaler.composition.gcp import calendar_advice

    with as_input_error():
        found = calendar_advice(query, region=region, now=clock.now())
    commands = [window.command for window in found.windows]
    if output != "table":
        rows = [
            {
                "zone": window.zone,
                "instanceType": query.instance_type,
                "count": query.count,
                "startsAt": window.starts_at.isoformat(),
                "endsAt": window.ends_at.isoformat(),
                "command": line,
            }
            for window, line in zip(found.windows, commands, strict=True)
        ]
        print_data({"windows": rows, "elsewhere": dict(found.elsewhere)}, output)
        return
    if found.windows:
        print_table(_COLUMNS, [_row(window.zone, window.starts_at, window.ends_at, query) for window in found.windows])
    else:
        click.echo(f"Google recommends nothing in {region}; try fewer machines, other hours or --within more days")
    if found.elsewhere:
        click.echo()
        print_table(("zone", "not recommended because"), sorted(found.elsewhere.items()))
    for line in commands:
        click.echo(
            "\nIt is paid for from its start on, and Google may not let it be withdrawn once it has approved it:"
        )
        click.echo(f"  {line}")


def _row(zone: str, starts_at: datetime, ends_at: datetime, query: CapacityQuery) -> tuple[str, ...]:
    hours = (ends_at - starts_at).total_seconds() / 3600
    return zone, f"{starts_at:%a %d %b %Y %H:%MZ}", f"{ends_at:%a %d %b %Y %H:%MZ}", f"{hours:.0f}", str(query.count)
