"""Pages that operations declare: a call, its view, its filters, and its links."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from statesvc.addons.console.operation_forms import filters_of
from statesvc.addons.console.screen import (
    FormAction,
    MenuGroup,
    PageRequest,
    PersonalDataRequest,
    Screen,
    Shown,
    Values,
)
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
                template="view.html",
                scope=Scope(operation.scope or Scope.ADMIN),
                show=_DeclaredPage(operation, page, by_path).show,
                menu=page.menu or None,
                group=MenuGroup(page.group),
                section=page.section,
            )


def declared_disclosures(
    routes: Iterable[Route], actions: Iterable[FormAction]
) -> Iterator[PersonalDataRequest]:
    """Yield the pages that show personal data for a reason."""
    by_path = {action.path: action for action in actions}
    for route in routes:
        for page in route.operation.pages:
            if page.personal:
                yield PersonalDataRequest(
                    path=page.path,
                    title=page.title,
                    scope=Scope.PII,
                    disclose=_DeclaredPage(route.operation, page, by_path).disclose,
                    section=page.section,
                )


@dataclass(frozen=True, slots=True)
class _DeclaredPage:
    operation: Operation[Any]
    page: ConsolePage
    actions: Mapping[str, FormAction]

    async def show(self, visit: PageRequest) -> Mapping[str, Any]:
        return await self._values(visit, visit.request.query)

    async def disclose(self, visit: PageRequest, values: Values) -> Shown:
        return Shown("view.html", await self._values(visit, values, include="personal"))

    async def _values(self, visit: PageRequest, asked: Values, **include: str) -> Mapping[str, Any]:
        page, path = self.page, dict(visit.request.match_info)
        wanted = {name: asked.get(name, page.preset.get(name, "")) for name in page.filter}
        stated = {name: value for name, value in wanted.items() if value}
        fields = {} if self.operation.parameters is None else self.operation.parameters.model_fields
        paged = (
            {"limit": _ROWS, "cursor": visit.query("cursor") or None} if "cursor" in fields else {}
        )
        given = {**page.fixed, **stated, **path, **paged, **include}
        answer = await visit.call_api(self.operation.where, **given)
        named = {**stated, **path, **answer}
        return {
            "title": sentence(page.title, named) or page.title,
            "page": page,
            "inputs": []
            if self.operation.parameters is None
            else filters_of(self.operation.parameters, *page.filter, values=wanted),
            "acts": [
                (
                    f"{sentence(act, named)}?{urlencode(stated)}".removesuffix("?"),
                    action,
                    not number,
                )
                for number, act in enumerate(page.acts)
                if (action := self.actions.get(act)) is not None
            ],
            "blocks": draw(self._view(visit), answer, stated),
            "wanted": wanted,
            "next_cursor": answer.get("next_cursor"),
            "here_path": visit.request.path,
            "masked": "" if include else page.personal,
        }

    def _view(self, visit: PageRequest) -> Views:
        """Return the view; each row of its list leads to its acts."""
        view = self.page.view or self.operation.view
        acts = [self.actions[path] for path in self.page.row_acts if path in self.actions]
        columns = [
            Column(_words(act.button), "Action", link=act.path)
            for act in acts
            if visit.may_change(act.scope)
        ]
        if not columns or not isinstance(view, Table):
            return view
        return Table(*view.columns, *columns, of=view.of, title=view.title, empty=view.empty)


def _words(text: str) -> Callable[[Answer], str]:
    return lambda _row: text
