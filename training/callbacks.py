"""What happens during training beside learning: checkpoints, an orderly stop, progress."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback, ProgressBarCallback

from agents.checkpoint import write_checkpoint
from training.args import Args
from training.run_folder import RunFolder
from training.snapshot import take_snapshot

LINE_EVERY_S = 10.0


class Stop:
    """A wish to stop after the rollout under way.

    Attributes:
        reason: empty until then.
    """

    def __init__(self, max_minutes: float) -> None:
        """Takes the time limit; 0: none."""
        self.reason = ""
        self._ends = time.monotonic() + 60.0 * max_minutes if max_minutes else float("inf")

    def check_time(self) -> None:
        """Stops when the time is over."""
        if not self.reason and time.monotonic() > self._ends:
            self.reason = "time limit"

    @contextmanager
    def on_interrupt(self) -> Iterator[None]:
        """Turns Ctrl-C into a wish to stop; a second one stops at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        signals = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.getsignal(number) for number in signals}

        def handle(number: int, _frame: FrameType | None) -> None:
            self.reason = "interrupted"
            message = "\nstopping after this rollout; once more: stop at once"
            print(message, file=sys.stderr, flush=True)
            signal.signal(number, signal.default_int_handler)

        for number in signals:
            signal.signal(number, handle)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


SAVE_EVERY_S = 15.0
"""A kill loses no more than this, however long the steps take."""


class Checkpoints(BaseCallback):
    """Writes checkpoints between rollouts, when all that was collected is learned.

    Every `checkpoint_every` steps, and at least every :data:`SAVE_EVERY_S` seconds.

    Attributes:
        has_stopped: whether training was ended early, after a last checkpoint.
    """

    def __init__(self, args: Args, folder: RunFolder, stop: Stop) -> None:
        super().__init__()
        self._args, self._folder, self._stop = args, folder, stop
        self._due = 0
        self._saved_s = 0.0
        self.has_stopped = False

    def _on_training_start(self) -> None:
        every = self._args.checkpoint_every
        is_new = self.num_timesteps == 0
        self._saved_s = time.monotonic()
        self._due = 0 if is_new else (self.num_timesteps // every + 1) * every

    def _on_rollout_start(self) -> None:
        self._stop.check_time()
        steps = self.model.num_timesteps
        self.has_stopped = bool(self._stop.reason)
        is_late = time.monotonic() - self._saved_s >= SAVE_EVERY_S
        if steps >= self._due or is_late or self.has_stopped:
            self.save()
            every = self._args.checkpoint_every
            self._due = (steps // every + 1) * every

    def _on_step(self) -> bool:
        return not self.has_stopped

    def save(self) -> None:
        """Writes a checkpoint now."""
        self._saved_s = time.monotonic()
        path = self._folder.checkpoint_path(self.model.num_timesteps)
        write_checkpoint(path, take_snapshot(self.model, self._args))  # type: ignore[arg-type]


class Curves(BaseCallback):
    """Adds the score of finished episodes to the curves."""

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        score = mean_of_episodes(self.model.ep_info_buffer, "score")
        if score is not None:
            self.logger.record("rollout/ep_score_mean", score)


class Lines(BaseCallback):
    """Progress as plain lines, for logs."""

    def __init__(self, total_steps: int) -> None:
        super().__init__()
        self._total = total_steps
        self._begun_s = self._printed_s = 0.0
        self._begun_steps = 0

    def _on_training_start(self) -> None:
        self._begun_s = self._printed_s = time.monotonic()
        self._begun_steps = self.num_timesteps

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        now = time.monotonic()
        if now - self._printed_s < LINE_EVERY_S and self.num_timesteps < self._total:
            return
        self._printed_s = now
        speed = (self.num_timesteps - self._begun_steps) / max(now - self._begun_s, 1e-9)
        text = f"{self.num_timesteps:,} / {self._total:,} steps  {speed:,.0f} steps/s"
        print(text + recent(self.model.ep_info_buffer), file=sys.stderr, flush=True)


class Bar(ProgressBarCallback):
    """Stable-Baselines3's progress bar, with the score of recent episodes before it."""

    def _on_rollout_end(self) -> None:
        self.pbar.set_description(recent(self.model.ep_info_buffer).strip() or None)


def make_progress(total_steps: int) -> BaseCallback:
    """A bar on a terminal, else lines."""
    is_terminal = sys.stdout.isatty() and sys.stderr.isatty()
    return Bar() if is_terminal else Lines(total_steps)


def recent(episodes: object) -> str:
    """Mean return and score of the last episodes, for a line of progress."""
    reward, score = mean_of_episodes(episodes, "r"), mean_of_episodes(episodes, "score")
    return "" if reward is None else f"  return {reward:+.2f}  score {score:.3f}"


def mean_of_episodes(episodes: object, key: str) -> float | None:
    """Mean over the episodes that Stable-Baselines3 remembers; None if there are none."""
    values = [episode[key] for episode in episodes or ()]  # type: ignore[attr-defined]
    return float(np.mean(values)) if values else None
