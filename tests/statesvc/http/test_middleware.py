"""Middleware that every call passes through."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from statesvc.http.middleware import names_of, numbers_of


class FieldFace(BaseModel):
    limit: int = 50
    carrier: list[str] = []
    status: Annotated[list[Literal["delivered"]] | None, Field(max_length=3)] = None
    since: str | None = Field(default=None, alias="from")
    named: tuple[str, ...] | None = Field(default=None, alias="tracking_number")


def test_numbers_are_known_however_they_are_declared() -> None:
    class Counted(BaseModel):
        limit: Annotated[int, Field(ge=1)] = 5
        after: Annotated[int | None, Field(alias="from")] = None
        seconds: float | None = None
        words: list[int] = []
        is_open: bool = False

    assert numbers_of(Counted) == {"limit": int, "from": int, "seconds": float}


def test_the_names_that_a_call_takes_are_those_of_its_schema() -> None:
    properties = FieldFace.model_json_schema()["properties"]
    variants = {name: [schema, *schema.get("anyOf", ())] for name, schema in properties.items()}
    names, repeatable = names_of(FieldFace)
    assert names == set(properties) == {"limit", "carrier", "status", "from", "tracking_number"}
    assert repeatable == {
        name
        for name, each in variants.items()
        if any(variant.get("type") == "array" for variant in each)
    }
    assert repeatable == {"carrier", "status", "tracking_number"}
