"""Record of what was done already: the webhook-id is the key, so nothing is done twice."""

from django.db import models


class Notification(models.Model):
    """A notification that statesvc sent to our URL. `queued_at`: since when
    Celery's broker has its task.
    """

    webhook_id = models.CharField(max_length=100, primary_key=True)
    queued_at = models.DateTimeField(null=True)


class Told(models.Model):
    """A customer was told."""

    webhook_id = models.CharField(max_length=100, primary_key=True)
    tracking_number = models.CharField(max_length=100)
    status = models.CharField(max_length=40)
    at = models.DateTimeField(auto_now_add=True)
