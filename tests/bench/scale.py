"""Scale of the measurement: a full run for the record, a quick one to see that nothing broke."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """`runs`: each figure is the median of so many."""

    runs: int = 3
    ack_rate: int = 2_000
    ack_seconds: int = 60
    closed_seconds: float = 10
    day_seconds: float = 60
    alerts: int = 50_000
    histories: int = 6_000
    peer_messages: int = 5_000
    visible_rate: int = 1_000
    visible_seconds: int = 30
    storm_messages: int = 15_000
    """Five minutes at 50 a second; each is pushed ten times."""
    dead_rows: int = 240_000
    waiting_rows: int = 500_000
    neighbour_seconds: int = 20
    normalize_seconds: float = 1.0
    rebuild_events: int = 1_000_000
    found_shipments: int = 1_000_000
    likely_searches: int = 5_000
    years_events: int = 10_000_000
    years_months: tuple[int, ...] = (60, 400)
    steady_rate: int = 1_200
    """About half of what all roles carry on two cores, the load among them."""
    steady_seconds: int = 1_800
    steady_portion_seconds: int = 120
    footprint_messages: int = 20_000
    volume_events: int = 5_000_000
    volume_messages: int = 150_000
    """Half an hour at 8 million a day, and a checkpoint interval as the server is shipped."""


QUICK = Scale(
    runs=1,
    ack_seconds=10,
    closed_seconds=3,
    day_seconds=6,
    alerts=12_000,
    histories=1_500,
    peer_messages=2_000,
    visible_seconds=8,
    storm_messages=1_500,
    dead_rows=60_000,
    waiting_rows=100_000,
    neighbour_seconds=6,
    normalize_seconds=0.3,
    rebuild_events=150_000,
    found_shipments=50_000,
    likely_searches=500,
    years_events=40_000,
    years_months=(13,),
    steady_rate=300,
    steady_seconds=12,
    steady_portion_seconds=4,
    footprint_messages=2_000,
    volume_events=40_000,
    volume_messages=4_000,
)
