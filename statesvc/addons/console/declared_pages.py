"""Pages that operations declare: a call, its view, the fields that filter it, and what it leads to."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from statesvc.addons.console.operation_forms import filters_of
from statesvc.addons.console.screen import FormAction, MenuGroup, PageRequest, Screen
from statesvc.http.faces import ConsolePage
from statesvc.http.keys.key_store import Scope
from statesvc.http.operation import Operation, Route
from statesvc.http.views import draw, sentence

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


@dataclass(frozen=True, slots=True)
class _DeclaredPage:
    operation: Operation[Any]
    page: ConsolePage
    actions: Mapping[str, FormAction]

    async def show(self, visit: PageRequest) -> Mapping[str, Any]:
        page, path = self.page, dict(visit.request.match_info)
        wanted = {
            name: visit.request.query.get(name, page.preset.get(name, "")) for name in page.filter
        }
        stated = {name: value for name, value in wanted.items() if value}
        fields = {} if self.operation.parameters is None else self.operation.parameters.model_fields
        paged = (
            {"limit": _ROWS, "cursor": visit.query("cursor") or None} if "cursor" in fields else {}
        )
        answer = await visit.call_api(self.operation.where, **stated, **path, **paged)
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
            "blocks": draw(page.view or self.operation.view, answer, stated),
            "wanted": wanted,
            "next_cursor": answer.get("next_cursor"),
            "here_path": visit.request.path,
        }
