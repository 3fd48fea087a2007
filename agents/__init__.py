"""Policies behind one small protocol: presets, random, learned.

They know the environment, but neither how they are trained nor how they are evaluated.
"""

from agents.policy import Action, Observed, Policy
from agents.preset import StaticPreset
from agents.random_policy import RandomPolicy
from agents.registry import make_policy

__all__ = ["Action", "Observed", "Policy", "RandomPolicy", "StaticPreset", "make_policy"]
