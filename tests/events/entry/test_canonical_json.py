import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from events.entry.canonical_json import canonical_bytes

text = st.text(st.characters(exclude_categories=["Cs"]))
keys = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | text,
    lambda children: st.lists(children) | st.dictionaries(keys, children),
    max_leaves=20,
)


@pytest.mark.slow
@given(st.dictionaries(keys, values))
def test_the_bytes_are_those_of_rfc_8785(value: dict[str, object]) -> None:
    assert canonical_bytes(value) == rfc8785.dumps(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [{"x": b"bytes"}, {"x": {1, 2}}])
def test_a_value_outside_the_domain_is_refused(value: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        canonical_bytes(value)
