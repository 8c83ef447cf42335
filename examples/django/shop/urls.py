"""URLs where carriers push, where statesvc notifies, and where the shop asks."""

from django.urls import path, re_path
from tracking import views

urlpatterns = [
    # with a slash or without: Django would redirect a POST without one, which no carrier follows
    re_path(r"^webhooks/(?P<carrier_id>[-\w]+)/?$", views.push),
    path("notifications/", views.notification),
    path("parcels/<slug:carrier_id>/<str:number>/", views.parcel),
]
