"""Forms of operations: inputs from the models of the calls, and whole declared forms."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import AwareDatetime, BaseModel, WithJsonSchema
from pydantic.fields import FieldInfo

from events.carriers import CARRIERS
from statesvc.addons.console.pages import utc_instant
from statesvc.addons.console.screen import (
    Done,
    DryRun,
    FormAction,
    Input,
    PageRequest,
    Values,
    changes,
)
from statesvc.http.call_progress import CallParts, Progress
from statesvc.http.faces import FieldFace, Form
from statesvc.http.inner_calls import Json, checked_body, checked_parameters
from statesvc.http.keys.key_store import Scope
from statesvc.http.operation import Operation, PartialChange, Route
from statesvc.http.problem import Code, Problem
from statesvc.http.views import (
    Line,
    Sentences,
    draw,
    member_names,
    member_of,
    path_segment,
    sentence,
)

_TIMES: Final = frozenset({datetime, AwareDatetime})
_YES_OR_NO: Final = (("", "any"), ("true", "yes"), ("false", "no"))


def inputs_of(
    model: type[BaseModel],
    *names: str,
    values: Mapping[str, Any] | None = None,
    left_out: str = "any",
) -> list[Input]:
    """Return inputs for fields of a call, filled with these values, else with their defaults.

    `left_out`: label of the choice of none.
    """
    return [
        _input(name, _field(model, name), {} if values is None else values, left_out)
        for name in names
    ]


def _field(model: type[BaseModel], name: str) -> FieldInfo:
    """Return the field of a model, or of the model of a member: `meaning.status`."""
    first, _, rest = name.partition(".")
    field = model.model_fields[first]
    return _field(plain_annotation(field.annotation), rest) if rest else field


def filters_of(model: type[BaseModel], *names: str, values: Values) -> list[Input]:
    """Return inputs that filter a list: a checkbox has a third state there."""
    carriers = [("", "any"), *((name, name) for name in sorted(CARRIERS))]
    chosen = {"checkbox": _YES_OR_NO, "carrier_id": carriers}
    filters = []
    for each in inputs_of(model, *names, values=values):
        options = chosen.get(each.name) or chosen.get(each.type)
        value = values.get(each.name, "")
        filters.append(
            replace(each, type="text", options=options, value=value) if options else each
        )
    return filters


def _input(name: str, field: FieldInfo, values: Mapping[str, Any], left_out: str) -> Input:
    asked = next((each for each in field.metadata if isinstance(each, FieldFace)), FieldFace())
    kind = plain_annotation(field.annotation)
    value = values.get(name, member_of(values, name))
    if value is None and not field.is_required():
        value = field.get_default()
    described: dict[str, Any] = {
        "name": name,
        "label": asked.label
        or name.rpartition(".")[2].removesuffix("_id").replace("_", " ").capitalize(),
        "hint": "" if kind is bool else asked.hint or field.description or "",
        "is_required": field.is_required(),
    }
    if kind is bool:
        return Input(**described, type="checkbox", value="1" if value else "")
    if kind in _TIMES:
        at = datetime.fromisoformat(value) if isinstance(value, str) and value else None
        described["hint"] = f"UTC. {described['hint']}".strip()
        shown = "" if at is None else f"{at.astimezone(UTC):%Y-%m-%dT%H:%M}"
        return Input(**described, type="datetime-local", value=shown)
    if get_origin(kind) is list:
        choices = _choices(plain_annotation(get_args(kind)[0]))
        of = f", of {', '.join(choices)}" if choices else ""
        described["hint"] = f"{described['hint']} Separated by commas{of}.".strip()
        return Input(**described, value=_text(value))
    if choices := _choices(kind, *field.metadata):
        options = [(choice, choice) for choice in choices]
        return Input(
            **described,
            options=options
            if field.is_required() or field.get_default() is not None
            else [("", left_out), *options],
            value=_text(value),
        )
    type_of = {int: "number", date: "date"}
    return Input(**described, type=type_of.get(kind, "text"), value=_text(value))


def plain_annotation(annotation: Any) -> Any:  # noqa: ANN401 - whatever stands in a model
    """Return the annotation without None and without metadata."""
    if get_origin(annotation) is Annotated:
        return plain_annotation(get_args(annotation)[0])
    if get_origin(annotation) in {Union, UnionType}:
        return plain_annotation(
            next(kind for kind in get_args(annotation) if kind is not type(None))
        )
    return annotation


def _choices(kind: Any, *metadata: object) -> list[str]:  # noqa: ANN401 - as `_plain`
    described = next((each for each in metadata if isinstance(each, WithJsonSchema)), None)
    if described is not None and described.json_schema is not None:
        return list(described.json_schema.get("enum", ()))
    if get_origin(kind) is Literal:
        return [str(choice) for choice in get_args(kind)]
    return (
        [choice.value for choice in kind]
        if isinstance(kind, type) and issubclass(kind, Enum)
        else []
    )


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def stated_in(values: Values, model: type[BaseModel], *names: str) -> dict[str, Any]:
    """Return the form's statement of these fields; of all fields without names.

    Empty inputs are left out, or null in a change; a box that is not ticked is False.
    """
    stated: dict[str, Any] = {}
    for name in names or model.model_fields:
        field, given = _field(model, name), values.get(name, "").strip()
        kind = plain_annotation(field.annotation)
        *outer, last = name.split(".")
        place = stated
        for part in outer:
            place = place.setdefault(part, {})
        if kind is bool:
            place[last] = bool(given)
        elif not given:
            if issubclass(model, PartialChange) and (
                outer or type(None) in get_args(field.annotation)
            ):
                place[last] = None
        elif kind in _TIMES:
            place[last] = utc_instant(given, name)
        elif get_origin(kind) is list:
            place[last] = [word for part in given.split(",") if (word := part.strip())]
        else:
            place[last] = given
    if issubclass(model, PartialChange):
        return {
            name: None if isinstance(value, dict) and not any(value.values()) else value
            for name, value in stated.items()
        }
    return stated


def declared_actions(routes: Iterable[Route]) -> Iterator[FormAction]:
    by_name = {route.operation.operation_id: route.operation for route in routes}
    for operation in by_name.values():
        for form in operation.forms:
            yield _DeclaredForm(operation, form, by_name.get(form.preview)).action()


@dataclass(frozen=True, slots=True)
class _DeclaredForm:
    """A form that makes a single call. `previewed`: the call of the dry run, if it is another."""

    operation: Operation[Any]
    form: Form
    previewed: Operation[Any] | None

    def action(self) -> FormAction:
        form = self.form
        return FormAction(
            path=form.path,
            title=form.title,
            button=form.button,
            scope=Scope(self.operation.scope or Scope.ADMIN),
            inputs=self._inputs if form.fields else None,
            dry_run=self._would,
            carry_out=self._carry_out,
            back=form.then if member_names(form.then) <= member_names(form.path) else form.section,
            section=form.section or form.then,
            is_drastic=form.is_drastic,
        )

    async def _inputs(self, visit: PageRequest) -> list[Input]:
        values = {**await self._present(visit), **visit.request.query}
        return [
            each
            for name in self.form.fields
            for each in inputs_of(self._model(name), name, values=values)
        ]

    async def _present(self, visit: PageRequest) -> Mapping[str, Any]:
        """Return the initial values of a filled form."""
        if not self.form.is_filled or self.previewed is None:
            return {}
        present: Mapping[str, Any] = await visit.call_api(
            self.previewed.where, **visit.request.match_info
        )
        return present

    def _changed(
        self, order: dict[str, Any] | None, present: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Leave unchanged members out of an order."""
        if order is None or not self.form.is_filled:
            return order
        return {
            name: value
            for name, value in order.items()
            if name not in self.form.fields or _text(value) != _text(present.get(name))
        }

    def _model(self, name: str) -> type[BaseModel]:
        """Return the model that has the field: the body's, or that of the parameters."""
        request, parameters = self.operation.request, self.operation.parameters
        is_body = request is not None and name.partition(".")[0] in request.model_fields
        model = request if is_body else parameters
        if model is None:
            raise KeyError(name)
        return model

    def _order(self, values: Values, path: Mapping[str, str]) -> dict[str, Any] | None:
        """Return the body, with names from the page's path that the call's own path lacks."""
        model, form = self.operation.request, self.form
        if model is None:
            return None
        why = {"why": values["why"]} if "why" in model.model_fields else {}
        names = [
            name
            for name in (*form.fields, *form.kept)
            if name.partition(".")[0] in model.model_fields
        ]
        stated = stated_in(values, model, *names) if names else {}
        own = self.operation.parameters
        taken = model.model_fields.keys() - (own.model_fields if own is not None else ())
        named = {name: value for name, value in path.items() if name in taken}
        return {**named, **stated, **form.fixed, **why}

    def _given(self, visit: PageRequest, values: Values) -> dict[str, Any]:
        """Return the parameters of path and query."""
        model = self.operation.parameters
        body = () if self.operation.request is None else self.operation.request.model_fields
        names = [name for name in self.form.fields if name.partition(".")[0] not in body]
        stated = stated_in(values, model, *names) if model is not None and names else {}
        return {**stated, **visit.request.match_info}

    async def _would(self, visit: PageRequest, values: Values) -> DryRun:
        model, path = self.operation.request, self._given(visit, values)
        order, answer = self._order(values, path), {}
        view = self.form.would
        if self.form.is_filled:
            return await self._would_change(visit, order or {}, path)
        if model is not None and "dry_run" in model.model_fields and self.previewed is None:
            answer = await visit.call_api(
                self.operation.where, {**(order or {}), "dry_run": True}, **path
            )
            view = view or self.operation.view
        else:
            if model is not None:
                checked_body(model, order or {})
            if self.operation.parameters is not None:
                checked_parameters(self.operation.parameters, path)
            if self.previewed is not None:
                asked = self.previewed.request
                taken = {
                    name: value
                    for name, value in (order or {}).items()
                    if asked is not None and name in asked.model_fields
                }
                answer = await visit.call_api(
                    self.previewed.where, taken, **visit.request.match_info
                )
                view = view or self.previewed.view
        blocks = draw(
            view or Sentences(self.operation.description), answer, {**(order or {}), **path}
        )
        refused = [block.text for block in blocks if isinstance(block, Line) and block.is_refusal]
        return DryRun(
            blocks=[
                block for block in blocks if not (isinstance(block, Line) and block.is_refusal)
            ],
            hidden={name: str(answer[name]) for name in self.form.kept},
            refusal=" ".join(refused) or None,
        )

    async def _would_change(
        self, visit: PageRequest, order: dict[str, Any], path: Mapping[str, Any]
    ) -> DryRun:
        model, present = self.operation.request, await self._present(visit)
        changed = self._changed(order, present) or {}
        if model is not None:
            checked_body(model, changed)
        if model is not None and "dry_run" in model.model_fields:
            await visit.call_api(self.operation.where, {**changed, "dry_run": True}, **path)
        shown = [
            (name, member_of(present, name), member_of(order, name))
            for name in self.form.fields
            if name.partition(".")[0] in order
        ]
        rows = [
            (name.rpartition(".")[2].replace("_", " "), _text(now), _text(then))
            for name, now, then in shown
            if _text(now) != _text(then)
        ]
        return DryRun(
            blocks=list(changes("Field", rows)), refusal=None if rows else "It is so already."
        )

    async def _carry_out(self, visit: PageRequest, values: Values) -> Done | Mapping[str, Any]:
        operation, path = self.operation, self._given(visit, values)
        order = self._changed(self._order(values, path), await self._present(visit))
        stated = {**(order or {}), **path}
        progress = None
        if operation.parts is None:
            answer = await visit.call_api(operation.where, order, **path)
        else:
            progress, answer = await _made_part(
                visit, operation, operation.parts, order or {}, values, **path
            )
            answer = {**answer, **progress.members}
        blocks = draw(self.form.view or operation.view, answer, stated)
        named = {**(answer or {}), **stated}
        parts = {name: path_segment(value) for name, value in named.items()}
        then = sentence(self.form.then, parts) or self.form.then
        is_over = progress is None or (not progress.goes_on and not values.get("cursor"))
        said = [block.text for block in blocks if isinstance(block, Line) and not block.is_refusal]
        if is_over and len(said) == len(blocks):
            return Done(sentence=" ".join(said), then=then)
        return {
            "blocks": blocks,
            "then": visit.at(then),
            "progress": progress,
            "next_part": None if progress is None else _next_part(progress, values, self.form),
            "goes_on": not values.get("limit"),
        }


def _next_part(progress: Progress, values: Values, form: Form) -> Values | None:
    """Return the form values of the next part; None at the end."""
    if not progress.goes_on:
        return None
    counts = {**progress.sums, "total": progress.total}
    return {
        **{name: values.get(name, "") for name in form.fields},
        **{name: str(count) for name, count in counts.items()},
        "cursor": progress.cursor or "",
    }


async def _made_part(
    visit: PageRequest,
    operation: Operation[Any],
    parts: CallParts,
    order: Mapping[str, Json],
    values: Values,
    **given: Json,
) -> tuple[Progress, Mapping[str, Json]]:
    """Make the next call of work in parts; return the progress with the former page's values."""
    sums = {
        name: _count_in(values, name) for name in values if name.partition(".")[0] in parts.summed
    }
    cursor = values.get("cursor")
    answer = await visit.call_api(
        operation.where, {**order, **({"cursor": cursor} if cursor else {})}, **given
    )
    return Progress(total=_count_in(values), sums=sums).after(answer, parts), answer


def _count_in(values: Values, name: str = "total") -> int:
    """Return a count that the former page carried."""
    text = values.get(name) or "0"
    if not text.isdecimal() or len(text) > 18:
        raise Problem(Code.INVALID_REQUEST, f"`{name}` is no number: begin again")
    return int(text)
