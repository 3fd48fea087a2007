"""All rules, in the order in which they look: what is broken before what is only loaded."""

from __future__ import annotations

from roce_gym.diagnose import broken, load
from roce_gym.diagnose.suspect import Rule

RULES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (
        broken.storming_nic,
        broken.pfc_deadlock,
        broken.corrupting_link,
        broken.slow_link,
        broken.silent_loss,
        load.exhausted_pool,
        load.ecmp_collision,
        load.incast,
    )
}
"""By name."""
