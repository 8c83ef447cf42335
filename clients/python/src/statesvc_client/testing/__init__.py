"""A service for your tests: `pip install 'statesvc-client[testing]'` brings the fixture
`statesvc`.
"""

from statesvc_client.testing.notifications import SECRET, SignedNotification, signed_notification
from statesvc_client.testing.service import Clock, Service

__all__ = ["SECRET", "Clock", "Service", "SignedNotification", "signed_notification"]
