"""URLs where carriers push, where statesvc notifies, and where the shop asks."""

from django.urls import path
from tracking import views

urlpatterns = [
    path("webhooks/<slug:carrier_id>/", views.push),
    path("notifications/", views.notification),
    path("parcels/<slug:carrier_id>/<str:number>/", views.parcel),
]
