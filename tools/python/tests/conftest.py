"""Tests take as long as the machine lets them."""

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
