"""Settings of the example. What concerns statesvc is at the end."""

import os
from pathlib import Path

BASE_DIR = Path(__file__).parents[1]
SECRET_KEY = os.environ.get("DJANGO_SECRET_KEY", "of an example")
ALLOWED_HOSTS = ["localhost", "127.0.0.1"]
INSTALLED_APPS = ["tracking"]
MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
ROOT_URLCONF = "shop.urls"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("DATABASE_FILE", BASE_DIR / "shop.sqlite3"),
        # several processes write; PostgreSQL needs neither
        "OPTIONS": {"timeout": 20, "transaction_mode": "IMMEDIATE"},
        # a file, so that a worker of its own sees what a test wrote
        "TEST": {"NAME": os.environ.get("DATABASE_FILE", BASE_DIR / "test.sqlite3")},
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
STATIC_URL = "static/"

CELERY_BROKER_URL = os.environ.get("BROKER_URL", "amqp://guest:guest@localhost/")
# Redis: when a task that nobody acknowledged is given to another worker; longer than the longest
# task
VISIBILITY_SECONDS = int(os.environ.get("VISIBILITY_SECONDS", "3600"))
CELERY_TASK_IGNORE_RESULT = True
# where retries go, whatever queue a task came by: on quorum queues they go to the
# default queue otherwise
CELERY_TASK_ROUTES = {"tracking.tasks.shipment_changed": {"queue": "celery"}}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# without it `delay` returns before RabbitMQ has the task, and a broker that dies takes it with it
CELERY_BROKER_TRANSPORT_OPTIONS = (
    {"confirm_publish": True}
    if CELERY_BROKER_URL.startswith("amqp")
    else {"visibility_timeout": VISIBILITY_SECONDS}
)
# a task is acknowledged once it is done, and comes again where its worker died
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True

STATESVC_URL = os.environ.get("STATESVC_URL", "http://localhost:8080")
STATESVC_API_KEY = os.environ.get("STATESVC_API_KEY", "")
# of the subscription; two while one is rotated. Names that begin with STATESVC_ are the service's:
# it refuses those that it does not know
NOTIFICATION_SECRETS = os.environ.get("NOTIFICATION_SECRETS", "").split()
