import time

import pytest

from events.errors import Cause, UnreadableMessageError
from events.parsing.xml import ELEMENTS_MAX, body_of, elements, is_xml, read_xml, text_at

LAUGHS = b'<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]><l>&b;</l>'


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (LAUGHS, Cause.REFUSED_XML),
        (b'<?xml version="1.0"?>\n<!-- x -->\n' + LAUGHS, Cause.REFUSED_XML),
        (LAUGHS.decode().encode("utf-16"), Cause.REFUSED_XML),
        (b"<!DOCTYPE a []><a/>", Cause.REFUSED_XML),
        *(
            (margin + b"<!DOCTYPE a []><a/>", Cause.REFUSED_XML)
            for margin in [b"\n\n", b"\xef\xbb\xbf \n"]
        ),
        (b'<!DOCTYPE a [<!ATTLIST a b CDATA "c">]><a/>', Cause.REFUSED_XML),
        (b'<!DOCTYPE a PUBLIC "-//a" "a.dtd"><a/>', Cause.REFUSED_XML),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'.encode("utf-16"), Cause.REFUSED_XML),
        (b"<!DOCTYPE a><a>&b;</a>", Cause.UNREADABLE),
        (b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', Cause.REFUSED_XML),
        (
            (
                b'<a xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="/etc/passwd"'
                b' parse="text"/></a>'
            ),
            Cause.REFUSED_XML,
        ),
        (b"<a>&b;</a>", Cause.UNREADABLE),
        (b"<a><b></a>", Cause.UNREADABLE),
        (b"<a>", Cause.UNREADABLE),
        (b"", Cause.UNREADABLE),
        (b" \n", Cause.UNREADABLE),
        (b'<?xml version="1.0" encoding="utf-8"?><a>\xe9</a>', Cause.UNREADABLE),
        (b"<a>" * 5000 + b"</a>" * 5000, Cause.UNREADABLE),
        (b"<a " + b" ".join(b'a%d=""' % n for n in range(20_000)) + b"/>", Cause.TOO_COMPLEX),
        (b"<a>" + b"<b/>" * ELEMENTS_MAX + b"</a>", Cause.TOO_COMPLEX),
    ],
)
def test_hostile_xml_is_refused_at_once(body: bytes, cause: Cause) -> None:
    started = time.perf_counter()
    with pytest.raises(UnreadableMessageError) as refusal:
        read_xml(body)
    assert refusal.value.cause is cause
    assert time.perf_counter() - started < 1


LATIN = '<?xml version="1.0" encoding="ISO-8859-1"?><a>Köln</a>'
DECLARED = b'<?xml version="1.0" encoding="utf-8"?><a>\xc3\xa9</a>\n\n'


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"<a><![CDATA[<!DOCTYPE html>]]></a>", "<!DOCTYPE html>"),
        ('<?xml version="1.0" encoding="gbk"?><a>签收</a>'.encode("gbk"), "签收"),
        ("<a>Zoé</a>".encode("utf-16"), "Zoé"),
        # a prolog that says Latin-1 does not spoil UTF-8
        *((LATIN.encode(encoding), "Köln") for encoding in ("utf-8", "iso-8859-1")),
        # what stands before the declaration
        *(
            (margin + DECLARED, "é")
            for margin in [b"\n\n", b" \r\n\t", b"\xef\xbb\xbf\n", b"\xef\xbb\xbf"]
        ),
        # a doctype that only names the root
        *(
            (prolog + b"<project>x</project>", "x")
            for prolog in [
                b"<!DOCTYPE project>",
                b'<?xml version="1.0"?>\n<!-- x --> <!DOCTYPE project >\n',
            ]
        ),
    ],
)
def test_text_is_read_in_its_encoding_whatever_stands_before_it(body: bytes, text: str) -> None:
    assert read_xml(body).root.text == text


@pytest.mark.parametrize(
    "body",
    [
        b"<p:a xmlns:p='urn:x'><p:b> 1 </p:b></p:a>",
        b"<a xmlns='urn:x'><b>1</b></a>",
        b"<a><!-- c --><?p i?><b>1<!-- c --></b></a>",
    ],
)
def test_prefixes_comments_and_instructions_do_not_matter(body: bytes) -> None:
    root = read_xml(body).root
    assert (root.tag, text_at(root, "c", "b"), [element.tag for element in root.iter()]) == (
        "a",
        "1",
        ["a", "b"],
    )


def test_the_namespaces_that_were_there_are_known() -> None:
    assert read_xml(b"<a xmlns='urn:x'><b xmlns='urn:y'/></a>").namespaces == {"urn:x", "urn:y"}


def test_a_soap_body_is_unwrapped() -> None:
    envelope = b"<e:Envelope xmlns:e='urn:soap'><e:Header/><e:Body>%s</e:Body></e:Envelope>"
    inside = body_of(read_xml(envelope % b"<a/>"))
    assert inside is not None
    assert inside.tag == "a"
    assert body_of(read_xml(envelope % b"")) is None
    bare = body_of(read_xml(b"<a><b/><b/></a>"))
    assert bare is not None
    assert [index for index, _ in elements(bare, "b")] == [0, 1]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b" <a/>", True),
        (b"\xef\xbb\xbf<a/>", True),
        ("<a/>".encode("utf-16"), True),
        (b'{"a": "<"}', False),
        (b"", False),
    ],
)
def test_xml_is_known_by_its_first_character(body: bytes, expected: bool) -> None:  # noqa: FBT001
    assert is_xml(body) is expected


def test_a_byte_that_cannot_be_decoded_is_named() -> None:
    with pytest.raises(UnreadableMessageError, match="not UTF-8 at byte 4"):
        read_xml("<a>Köln</a>".encode("iso-8859-1"))
