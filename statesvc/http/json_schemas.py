"""JSON schemas of models, as the documents of the API have them."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import (
    DataclassField,
    IntSchema,
    LiteralSchema,
    ModelField,
    ModelSchema,
    NoneSchema,
    TupleSchema,
    TypedDictField,
)

REFERENCE: Final = "#/components/schemas/{model}"
_PAGE_OF: Final = re.compile(r"^Page\[(\w+)\]$")
_INT32_MAX: Final = 2**31 - 1
Mode = Literal["validation", "serialization"]
Schemas = Mapping[tuple[Any, Mode], dict[str, Any]]


class _Generator(GenerateJsonSchema):
    """Answers are open: later versions add members, and words to their vocabularies.

    A page of things is a `ThingPage`.
    """

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        described = super().model_schema(schema)
        if self.mode == "serialization":
            described.pop("additionalProperties", None)
        return described

    def int_schema(self, schema: IntSchema) -> JsonSchemaValue:
        """Describe an integer; typed clients hold it in 32 bits without a `format`."""
        described = super().int_schema(schema)
        if described.get("maximum", _INT32_MAX + 1) > _INT32_MAX:
            described["format"] = "int64"
        return described

    def none_schema(self, schema: NoneSchema) -> JsonSchemaValue:  # noqa: ARG002 - pydantic's
        """Describe a member that is always null: a typed client has no type for `null` alone."""
        return {"const": None}

    def tuple_schema(self, schema: TupleSchema) -> JsonSchemaValue:
        """Describe a tuple; `items` too, for readers without `prefixItems` (OpenAPI 3.0's)."""
        described = super().tuple_schema(schema)
        if "prefixItems" in described:
            described.setdefault("items", described["prefixItems"][0])
        return described

    def literal_schema(self, schema: LiteralSchema) -> JsonSchemaValue:
        described = super().literal_schema(schema)
        is_vocabulary = (
            self.mode == "serialization"
            and described.get("type") == "string"
            and "enum" in described
        )
        return {"anyOf": [described, {"type": "string"}]} if is_vocabulary else described

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ANN401, ARG002 - pydantic's
        return False

    def normalize_name(self, name: str) -> str:
        return super().normalize_name(_PAGE_OF.sub(r"\1Page", name))

    def field_is_required(
        self,
        field: ModelField | DataclassField | TypedDictField,
        total: bool,  # noqa: FBT001 - pydantic's
    ) -> bool:
        """Return whether the field is required; a dataclass is always sent whole."""
        is_sent = self.mode == "serialization" and field["type"] == "dataclass-field"
        return is_sent or super().field_is_required(field, total)


def schemas_of(wanted: Iterable[tuple[type[Any], Mode]]) -> tuple[Schemas, dict[str, Any]]:
    """Return the schemas of models, and the definitions that they refer to."""
    adapters: list[tuple[Any, Mode, TypeAdapter[Any]]] = [
        (model, mode, TypeAdapter(model)) for model, mode in dict.fromkeys(wanted)
    ]
    found, document = TypeAdapter.json_schemas(
        adapters, ref_template=REFERENCE, schema_generator=_Generator
    )
    return found, document.get("$defs", {})


def schema_of(parameters: type[BaseModel]) -> dict[str, Any]:
    return parameters.model_json_schema(ref_template=REFERENCE, schema_generator=_Generator)
