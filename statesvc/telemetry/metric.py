"""Definition of a metric: a row of the table in `names`."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Instrument(StrEnum):
    """Instrument of a metric. The observed ones are read by a callback at each scrape."""

    COUNTER = "counter"
    HISTOGRAM = "histogram"
    OBSERVED_GAUGE = "observed_gauge"
    OBSERVED_COUNTER = "observed_counter"


class Attribute(StrEnum):
    """The closed list of attribute keys."""

    CARRIER = "carrier"
    OUTCOME = "outcome"
    VERDICT = "verdict"
    CAUSE = "cause"
    STAGE = "stage"
    QUEUE = "queue"
    FILL = "fill"
    FLAG = "flag"
    STATUS = "status"
    TYPE = "type"
    POOL = "pool"
    STATE = "state"
    ATTEMPT = "attempt"
    TZ_SOURCE = "tz_source"
    KIND = "kind"
    PROMISE = "promise"
    SUBSCRIPTION = "subscription"
    VOLUME = "volume"


class Stage(StrEnum):
    """The stages of a message. A span is named `statesvc.<stage>`."""

    INGEST = "ingest"
    CLAIM = "claim"
    NORMALIZE = "normalize"
    APPEND = "append"
    PROJECT = "project"
    SETTLE = "settle"
    PROCESS = "process"
    """A message from its claim to the commit that settled it, through the batch's stages."""
    DELIVER = "deliver"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A row of the table. `buckets` are upper bounds in `unit`, of a histogram only."""

    name: str
    instrument: Instrument
    unit: str
    description: str
    attributes: tuple[Attribute, ...] = ()
    buckets: tuple[float, ...] = ()


def counter(name: str, unit: str, description: str, *attributes: Attribute) -> Metric:
    return Metric(
        name=name,
        instrument=Instrument.COUNTER,
        unit=unit,
        description=description,
        attributes=attributes,
    )


def histogram(
    name: str, unit: str, description: str, *attributes: Attribute, buckets: tuple[float, ...]
) -> Metric:
    """Define a metric of how values are spread; `buckets` are upper bounds."""
    return Metric(
        name=name,
        instrument=Instrument.HISTOGRAM,
        unit=unit,
        description=description,
        attributes=attributes,
        buckets=buckets,
    )


def gauge(name: str, unit: str, description: str, *attributes: Attribute) -> Metric:
    return Metric(
        name=name,
        instrument=Instrument.OBSERVED_GAUGE,
        unit=unit,
        description=description,
        attributes=attributes,
    )


def total(name: str, unit: str, description: str, *attributes: Attribute) -> Metric:
    """Define a sum that something else adds up, read at each scrape."""
    return Metric(
        name=name,
        instrument=Instrument.OBSERVED_COUNTER,
        unit=unit,
        description=description,
        attributes=attributes,
    )


# Seconds. 20 ms and 100 ms are exact bounds: the ACK objectives are read from them without
# interpolation.
LATENCY_BUCKETS: Final = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.02,
    0.05,
    0.075,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
)
# Seconds. 120 s is the promise of end-to-end lag, 10 s that of a first attempt.
LAG_BUCKETS: Final = (
    0.005,
    0.01,
    0.02,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    120.0,
    600.0,
    3600.0,
)
