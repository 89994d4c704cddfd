"""A Django project in one file."""

from __future__ import annotations

import beside
import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, JsonResponse
from django.urls import path

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["localhost", "127.0.0.1"], SECRET_KEY="example")
django.setup()


def orders(_: HttpRequest) -> JsonResponse:
    beside.query()
    beside.query()
    return JsonResponse({"orders": [{"order": number, "state": "sent"} for number in range(20)]})


urlpatterns = [path("orders", orders)]
application = get_wsgi_application()
beside.compute()
