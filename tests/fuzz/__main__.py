"""`make fuzz`: 60 seconds of mutated bodies for each carrier, two at a time, in processes
whose memory is bounded.

`make fuzz ARGS="ups fedex --seconds 10"` chooses; what broke a rule is kept as a file, and its line
says how to see it again.
"""

import argparse
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Final

from events.carriers import CARRIERS
from tests.fuzz.examine import examine
from tests.fuzz.run import body_of, bound_memory, fuzz

SECONDS: Final = 60.0


def main() -> int:
    """Fuzz; return 1 where a rule was broken."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description="Mutated bodies for the normalizers."
    )
    parser.add_argument("carriers", nargs="*", metavar="CARRIER", help="default: all")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="for each carrier (default: %(default)s)"
    )
    parser.add_argument(
        "--only", metavar="NUMBER", help="one mutation of one carrier, with its traceback"
    )
    options = parser.parse_args()
    chosen: list[str] = options.carriers or list(CARRIERS)
    if unknown := [name for name in chosen if name not in CARRIERS]:
        parser.error(f"no carrier {', '.join(unknown)}; there are {', '.join(CARRIERS)}")
    if options.only is not None:
        sys.stdout.write(
            examine(CARRIERS[chosen[0]], body_of(chosen[0], options.only), weigh=True) + "\n"
        )
        return 0
    is_broken = False
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context, initializer=bound_memory) as pool:
        for done in as_completed(
            [pool.submit(fuzz, carrier_id, options.seconds) for carrier_id in chosen]
        ):
            report = done.result()
            is_broken = is_broken or bool(report.faults)
            outcomes = ", ".join(
                f"{outcome} {count:,}" for outcome, count in report.outcomes.most_common()
            )
            sys.stdout.write(
                f"{report.carrier_id:<16}{report.outcomes.total():>9,} bodies: {outcomes}\n"
            )
            sys.stdout.writelines(f"  {fault}\n" for fault in report.faults)
            sys.stdout.flush()
    return 1 if is_broken else 0


if __name__ == "__main__":
    sys.exit(main())
