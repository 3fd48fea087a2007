"""Who slows whom: runs without one tenant, and what the others gain by that."""

from roce_gym.blame.matrix import NOISE, Blame, Effect, blame
from roce_gym.blame.runs import Task, Times, run_task
from roce_gym.blame.workers import run_tasks

__all__ = ["NOISE", "Blame", "Effect", "Task", "Times", "blame", "run_task", "run_tasks"]
