"""Every page of the console: a screen is a row here, an action another."""

from statesvc.addons.console.assets import shipped_assets
from statesvc.addons.console.carrier_screens import carrier_pages
from statesvc.addons.console.declared_pages import declared_pages
from statesvc.addons.console.event_screen import event_pages
from statesvc.addons.console.evidence_screen import evidence_pages
from statesvc.addons.console.expectation_screens import expectation_pages
from statesvc.addons.console.frame import ScreenFrame
from statesvc.addons.console.frame_menu import Menu
from statesvc.addons.console.login import LoginPages
from statesvc.addons.console.operation_forms import declared_actions
from statesvc.addons.console.overview import Overview
from statesvc.addons.console.pages import Templates
from statesvc.addons.console.portal import routes as portal_routes
from statesvc.addons.console.promise_screens import promise_pages
from statesvc.addons.console.runbook_screens import runbook_pages
from statesvc.addons.console.shipment_screens import shipment_pages
from statesvc.addons.console.shipment_search import list_page
from statesvc.addons.console.subscription_screens import subscription_pages
from statesvc.addons.console.web_sessions import WebSessions
from statesvc.http.inner_calls import InnerCalls
from statesvc.http.operation import Route
from statesvc.http.served_calls import ServedCalls
from statesvc.seams import is_on


def served_pages(served: ServedCalls) -> list[Route]:
    """Return the routes of the console and the portal, as the role api serves them."""
    calls, readable = served.calls, served.readable
    inner = InnerCalls(calls, served.limits)
    declared = [*declared_actions(calls)]
    expectations, stating = expectation_pages() if is_on("expectations") else ((), ())
    # in the order of the left column
    screens = [
        Overview(readable).screen(),
        *carrier_pages(served.pool),
        list_page(),
        *shipment_pages(),
        *event_pages(),
        *(evidence_pages() if is_on("evidence") else ()),
        *declared_pages(calls, declared),
        *subscription_pages(served.pool),
        *(promise_pages() if is_on("expectations") else ()),
        *expectations,
        *runbook_pages(),
    ]
    templates, sessions = Templates(), WebSessions(readable, served.readable_keys, served.signer)
    frame = ScreenFrame(
        pages=templates,
        find=sessions.of,
        calls=inner,
        screens=screens,
        menu=Menu(readable, screens),
        actions=[*declared, *stating],
    )
    login = LoginPages(frame, pages=templates, sessions=sessions)
    return [
        shipped_assets().route(),
        *login.routes(),
        *frame.routes(),
        *portal_routes(served),
    ]
