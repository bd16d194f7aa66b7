"""What every test shares."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# No deadline: the machine is shared, and a slow example is no wrong one. Derandomised:
# a change is judged by its own faults. For a hunt: pytest --hypothesis-profile=hunt.
settings.register_profile(
    "suite", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("hunt", deadline=None, max_examples=2000)
settings.load_profile("suite")
