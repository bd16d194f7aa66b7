"""Watch torch run: the only part of shapetrace that touches a live model."""

from shapetrace.capture.recording import Recording, record

__all__ = ["Recording", "record"]
