"""Each incident of the runbook: its alert fires, its page leads out of it, the alert stops."""

import pytest

from tests.soak.incidents.incident import Incident, play
from tests.soak.incidents.ten import TEN
from tests.world.programs import required


@pytest.mark.soak
@pytest.mark.parametrize("incident", TEN, ids=lambda incident: incident.name)
def test_the_alert_fires_and_its_page_leads_out(incident: Incident) -> None:
    required("prometheus", "prometheus")
    required("psql", "postgresql-client")
    course = play(incident)
    assert course.ran or incident.outside, "the page has nothing to do"
