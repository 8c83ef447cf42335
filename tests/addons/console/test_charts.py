"""Charts: what stands beside a scale is not written over."""

import re

from statesvc.addons.console.charts import Bar, bars


def test_columns_end_before_the_numbers_of_the_scale_and_only_the_highest_has_the_unit() -> None:
    drawn = str(bars([Bar("a", (2500,)), Bar("b", (900,))], title="pushes", unit=" a minute"))
    ends = [
        float(x) + float(width)
        for x, width in re.findall(r'<rect [^>]*x="([\d.]+)%"[^>]* width="([\d.]+)%"', drawn)
    ]
    assert max(ends) < 91
    assert re.findall(r'text-anchor="end">([^<]*)<', drawn) == ["1,000", "2,000", "3,000 a minute"]
    alone = str(bars([Bar("a", (2,)), Bar("b", (1,))], title="pushes"))
    assert 'x="50.00%"' in alone, "without a scale they have all the room"
