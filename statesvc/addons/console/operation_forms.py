"""Forms as the operations have them: their inputs from the models of the calls, and whole forms that an operation declares."""

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from statesvc.addons.console.screen import Done, DryRun, FormAction, Input, PageRequest, Values
from statesvc.http.faces import Asked, Form
from statesvc.http.keys.key_store import Scope
from statesvc.http.operation import Operation, Route


def inputs_of(
    model: type[BaseModel],
    *names: str,
    values: Mapping[str, Any] | None = None,
    left_out: str = "any",
) -> list[Input]:
    """Return inputs for fields of a call, filled with these values, else with their defaults. `left_out`: a choice of none."""
    return [
        _input(name, model.model_fields[name], {} if values is None else values, left_out)
        for name in names
    ]


def _input(name: str, field: FieldInfo, values: Mapping[str, Any], left_out: str) -> Input:
    asked = next((each for each in field.metadata if isinstance(each, Asked)), Asked())
    kind = _plain(field.annotation)
    value = values.get(name, None if field.is_required() else field.get_default())
    described: dict[str, Any] = {
        "name": name,
        "label": asked.label or name.removesuffix("_id").replace("_", " ").capitalize(),
        "hint": "" if kind is bool else asked.hint or field.description or "",
        "is_required": field.is_required(),
    }
    if kind is bool:
        return Input(**described, type="checkbox", value="1" if value else "")
    if choices := _choices(kind):
        options = [(choice, choice) for choice in choices]
        return Input(
            **described,
            options=options if field.is_required() else [("", left_out), *options],
            value=_text(value),
        )
    return Input(**described, type="number" if kind is int else "text", value=_text(value))


def _plain(annotation: Any) -> Any:  # noqa: ANN401 - whatever stands in a model
    """Return the annotation without None."""
    if get_origin(annotation) in {Union, UnionType}:
        return _plain(next(kind for kind in get_args(annotation) if kind is not type(None)))
    return annotation


def _choices(kind: Any) -> list[str]:  # noqa: ANN401 - as `_plain`
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
    return f"{value:g}" if isinstance(value, float) else str(value)


def stated_in(values: Values, model: type[BaseModel], *names: str) -> dict[str, Any]:
    """Return what a form states of these fields, of all without a name; what is empty is left out, a box that is not ticked is False."""
    stated: dict[str, Any] = {}
    for name in names or model.model_fields:
        if _plain(model.model_fields[name].annotation) is bool:
            stated[name] = bool(values.get(name))
        elif values.get(name):
            stated[name] = values[name]
    return stated


def declared_actions(routes: Iterable[Route]) -> Iterator[FormAction]:
    """Yield the forms that the operations declare."""
    for route in routes:
        yield from (_declared(route.operation, form) for form in route.operation.forms)


def _declared(operation: Operation[Any], form: Form) -> FormAction:
    async def inputs(visit: PageRequest) -> list[Input]:
        return (
            inputs_of(operation.request, *form.fields, values=visit.request.query)
            if operation.request is not None
            else []
        )

    def order(values: Values) -> dict[str, Any] | None:
        if operation.request is None:
            return None
        why = {"why": values["why"]} if "why" in operation.request.model_fields else {}
        stated = stated_in(values, operation.request, *form.fields) if form.fields else {}
        return {**stated, **form.fixed, **why}

    async def would(visit: PageRequest, values: Values) -> DryRun:
        body = order(values)
        if body is not None:
            visit.calls.check(operation.where, body)
        sentences = form.would or (operation.description,)
        return DryRun(
            sentences=[sentence.format_map(visit.request.match_info) for sentence in sentences]
        )

    async def carry_out(visit: PageRequest, values: Values) -> Done:
        answer = await visit.call_api(operation.where, order(values), **visit.request.match_info)
        said = {**(answer if isinstance(answer, dict) else {}), **visit.request.match_info}
        return Done(sentence=form.done.format_map(said), then=form.then.format_map(said))

    return FormAction(
        path=form.path,
        title=form.title,
        button=form.button,
        scope=Scope(operation.scope or Scope.ADMIN),
        inputs=inputs if form.fields else None,
        dry_run=would,
        carry_out=carry_out,
        back=form.then,
        section=form.section or form.then,
        is_drastic=form.is_drastic,
    )
