"""`roce-gym render`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.error import DependencyNotInstalled

from roce_gym.env import RoceEnv
from roce_gym.errors import ConfigError
from roce_gym.registration import ENVIRONMENTS
from roce_gym.render.canvas import pillow

COLORS = 64
"""Of a film: enough for what pictures have, and half of the bytes of 256."""

TURN_EVERY = 20
"""Intervals after which `--random` turns all knobs."""


def render(arguments: argparse.Namespace) -> int:
    """Plays an episode and writes its pictures.

    Raises:
        ConfigError: anything that is not acceptable, before anything is simulated.
    """
    out: Path = arguments.out
    if out.suffix not in (".gif", ".png"):
        raise ConfigError(f"--out: {out} is not allowed; allowed: files in .gif or .png")
    if out.exists() and not arguments.force:
        raise ConfigError(f"--out: {out} exists; give --force to replace it")
    if not out.absolute().parent.is_dir():
        raise ConfigError(f"--out: the folder {out.absolute().parent} does not exist")
    try:
        images, _, _ = pillow()
    except DependencyNotInstalled as error:
        raise ConfigError(str(error)) from None
    scenario = ENVIRONMENTS.get(arguments.scenario, arguments.scenario)
    env = RoceEnv(scenario, overrides=arguments.changes, render_mode="rgb_array")
    is_film = out.suffix == ".gif"
    frames = [images.fromarray(frame) for frame in _play(env, arguments, is_film)]
    if is_film:
        palette = frames[len(frames) // 2].quantize(COLORS)
        small = [frame.quantize(palette=palette, dither=images.Dither.NONE) for frame in frames]
        small[0].save(
            out,
            save_all=True,
            append_images=small[1:],
            duration=round(1000 / arguments.fps),
            loop=0,
            optimize=False,
        )
    else:
        frames[-1].save(out)
    print(f"{out}: {len(frames)} picture{'s' if len(frames) > 1 else ''}")
    return 0


def _play(env: RoceEnv, arguments: argparse.Namespace, is_film: bool) -> Iterator[Any]:
    """Pictures after every so many intervals, or the last one only."""
    preset = None if arguments.random else (arguments.preset or "default")
    env.reset(seed=arguments.seed, options={"preset": preset})
    rng = np.random.default_rng(arguments.seed)
    action = np.zeros(env.knobs.space.shape, np.float32)
    step, is_over = 0, False
    while not is_over:
        if arguments.random and step % TURN_EVERY == 0:
            action = rng.uniform(-1.0, 1.0, action.shape).astype(np.float32)
        *_, terminated, truncated, _ = env.step(action)
        step += 1
        is_over = terminated or truncated or step == arguments.steps
        if is_over or (is_film and step % arguments.every == 0):
            yield env.render()
