"""Pages that operations declare: a call, its view, its filters, and its links."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from statesvc.addons.console.operation_forms import filters_of
from statesvc.addons.console.screen import Act, FormAction, MenuGroup, PageRequest, Screen
from statesvc.http.faces import ConsolePage
from statesvc.http.keys.key_store import Scope
from statesvc.http.operation import Operation, Route
from statesvc.http.views import Answer, Column, Table, Views, draw, sentence

_ROWS: Final = 50


def declared_pages(routes: Iterable[Route], actions: Iterable[FormAction]) -> Iterator[Screen]:
    """Yield the pages that the operations declare. `actions`: the forms that pages lead to."""
    by_path = {action.path: action for action in actions}
    for route in routes:
        operation = route.operation
        for page in operation.pages:
            yield Screen(
                path=page.path,
                title=page.title,
                scope=Scope(operation.scope or Scope.ADMIN),
                show=_DeclaredPage(operation, page, by_path).show,
                personal=Scope.PII if page.personal else None,
                menu=page.menu or None,
                group=MenuGroup(page.group),
                section=page.section,
            )


@dataclass(frozen=True, slots=True)
class _DeclaredPage:
    operation: Operation[Any]
    page: ConsolePage
    actions: Mapping[str, FormAction]

    async def show(self, visit: PageRequest) -> Mapping[str, Any]:
        page, path, model = self.page, dict(visit.request.match_info), self.operation.parameters
        wanted = {
            name: visit.query(name) if name in visit.given else page.preset.get(name, "")
            for name in page.filter
        }
        stated = {name: value for name, value in wanted.items() if value}
        paged = model is not None and "cursor" in model.model_fields
        cursor = {"limit": _ROWS, "cursor": visit.query("cursor") or None} if paged else {}
        include = {"include": visit.include} if visit.include else {}
        given = {**page.fixed, **stated, **path, **cursor, **include}
        answer = await visit.call_api(self.operation.where, **given)
        named = {**stated, **path, **answer}
        return {
            "title": sentence(page.title, named) or page.title,
            "is_live": page.is_live,
            "runbook": page.runbook,
            "inputs": [] if model is None else filters_of(model, *page.filter, values=wanted),
            "acts": [
                Act(
                    f"{sentence(act, named)}?{urlencode(stated)}".removesuffix("?"),
                    self.actions[act].button,
                    self.actions[act].scope,
                    is_main=not number,
                )
                for number, act in enumerate(page.acts)
                if act in self.actions
            ],
            "blocks": draw(self._view(visit), answer, stated),
            "wanted": wanted,
            "next_cursor": answer.get("next_cursor"),
            "masked": "" if visit.include else page.personal,
        }

    def _view(self, visit: PageRequest) -> Views:
        """Return the view; each row of its list leads to its acts."""
        view = self.page.view or self.operation.view
        acts = [self.actions[path] for path in self.page.row_acts if path in self.actions]
        columns = [
            Column(partial(_button, act), "Action", link=act.path)
            for act in acts
            if visit.may_change(act.scope)
        ]
        if not columns or not isinstance(view, Table):
            return view
        return Table(*view.columns, *columns, of=view.of, title=view.title, empty=view.empty)


def _button(act: FormAction, _row: Answer) -> str:
    return act.button
