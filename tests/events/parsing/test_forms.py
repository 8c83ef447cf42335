import pytest

from events.parsing.forms import FIELDS_MAX, form_fields


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (b"a=1&b=x+y%26z", {b"a": b"1", b"b": b"x y&z"}),
        (b"a=1&a=2", {b"a": b"1"}),
        (b"a", {}),
        (b"", {}),
        (b'{"a": "b=1"}', {}),
        (b"<a b='1'/>", {}),
        (b"a=%zz&b", {b"a": b"%zz"}),
    ],
)
def test_a_form_is_read_by_its_fields_and_nothing_else_is(
    body: bytes, fields: dict[bytes, bytes]
) -> None:
    assert form_fields(body) == fields


def test_the_fields_of_a_form_are_bounded() -> None:
    assert (
        len(form_fields(b"&".join(b"f%d=1" % number for number in range(FIELDS_MAX * 100))))
        == FIELDS_MAX
    )
