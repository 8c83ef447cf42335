"""List of mappings, next to the shipped tables: a mapping equal to a table's can be taken back."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, Field

from events.carriers.carrier import Carrier
from events.event import Raw
from events.parsing.meanings import Meaning
from events.vocabulary import Kind
from statesvc.addons.mappings.mapping_store import CodeMapping
from statesvc.addons.mappings.preview import CodeMeaning


class ListedMapping(BaseModel):
    """A row: its code as logged, its meaning, and the shipped table's meaning."""

    revision: Annotated[
        int,
        Field(
            description="Stands in the normalizer version of what it read: `1+m7`.", examples=[7]
        ),
    ]
    carrier_id: Annotated[str, Field(examples=["ups"])]
    raw_type: Annotated[str | None, Field(examples=["X"])]
    raw_code: Annotated[str | None, Field(examples=["9Z"])]
    raw_reason: Annotated[str | None, Field(description="Null: any.")]
    raw_text: Annotated[
        str | None, Field(description="The digest of the text that accompanies them; null: any.")
    ]
    texts: Annotated[
        dict[str, str] | None,
        Field(
            description=(
                "The texts, by what stands for them. Needs the scope `pii`; null without it."
            )
        ),
    ]
    meaning: Annotated[
        CodeMeaning | None, Field(description="Null: from here on as the normalizer says.")
    ]
    shipped: Annotated[
        CodeMeaning | None,
        Field(
            description="What this release's table says; null: nothing, or the codes do not decide."
        ),
    ]
    redundant: Annotated[
        bool,
        Field(
            description=(
                "The table says the same: the mapping can be taken back and nothing changes."
            )
        ),
    ]
    added_at: AwareDatetime
    added_by: Annotated[str, Field(examples=["key:k_8f2"])]
    why: Annotated[str, Field(examples=["their list of codes of 2026-11, page 4"])]


def listed(
    carrier: Carrier, mapping: CodeMapping, texts: Mapping[str, str], *, shows_texts: bool = True
) -> ListedMapping:
    """Return a row as it is listed. `texts`: by their placeholders."""
    shipped = shipped_reading(carrier, mapping, texts)
    return ListedMapping(
        revision=mapping.revision,
        carrier_id=mapping.carrier_id,
        raw_type=mapping.raw_type,
        raw_code=mapping.raw_code,
        raw_reason=mapping.raw_reason,
        raw_text=mapping.raw_text,
        texts={each: texts[each] for each in mapping.code.stand_ins if each in texts}
        if shows_texts
        else None,
        meaning=CodeMeaning.of(mapping.meaning),
        shipped=CodeMeaning.of(shipped),
        redundant=shipped is not None and shipped == mapping.meaning,
        added_at=mapping.added_at,
        added_by=mapping.added_by,
        why=mapping.why,
    )


def shipped_reading(
    carrier: Carrier, mapping: CodeMapping, texts: Mapping[str, str]
) -> Meaning | None:
    """Return the reading of this release without the mapping, by the codes alone.

    None: no reading, or other fields decide.
    """
    is_known = mapping.raw_text is None and texts.keys() >= set(mapping.code.stand_ins)
    found = carrier.reread(_raw(mapping, texts)) if is_known else None
    return None if found is None or found.kind is Kind.UNMAPPED else found


def _raw(mapping: CodeMapping, texts: Mapping[str, str]) -> Raw:
    def printed(part: str | None) -> str | None:
        return None if part is None else texts.get(part, part)

    return Raw(
        type=printed(mapping.raw_type),
        code=printed(mapping.raw_code),
        reason=printed(mapping.raw_reason),
    )
