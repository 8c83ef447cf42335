"""The project; Celery's application is loaded with it."""

from shop.celery import app as celery_app

__all__ = ["celery_app"]
