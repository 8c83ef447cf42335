"""`statesvc_client.testing` of 0.1.0 imports the add-on under the name that it had then."""

from pkgutil import resolve_name


def test_the_name_of_0_1_0_leads_to_the_add_on() -> None:
    assert callable(resolve_name("statesvc.demo.movable_clock:advance_clock"))
    assert callable(resolve_name("statesvc.demo.sample_pushes:sample_push"))
