"""Proximal policy optimisation with Stable-Baselines3: `python -m training.ppo --help`.

    python -m training.ppo --config noisy_neighbor
    python -m training.ppo --config my.yaml --run-dir runs/mine --seed 2
    python -m training.ppo --resume runs/mine

What is in a run's folder: `training.run_folder`. Curves: `tensorboard --logdir runs`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CallbackList
from stable_baselines3.common.logger import configure
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from roce_gym.errors import RoceGymError
from training.args import Args, check_environment
from training.callbacks import Checkpoints, Curves, Stop, make_progress
from training.command import Command, parse
from training.environment import default_action, warm_up
from training.run_folder import RunFolder
from training.snapshot import restore_env, restore_model
from training.vec import make_vec_env

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Trains; exit code 0: done, 2: refused, 130: stopped and can be resumed."""
    try:
        command = parse(sys.argv[1:] if argv is None else argv)
        reason = train(command.args, Path(command.run_dir), command.is_resumed, command.overwrite)
    except RoceGymError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; --resume goes on from the last checkpoint", file=sys.stderr)
        return INTERRUPTED
    print(_farewell(command, reason))
    return INTERRUPTED if reason == "interrupted" else 0


def train(args: Args, run_dir: Path, resume: bool = False, overwrite: bool = False) -> str:
    """Trains until `args.whole_steps`.

    Args:
        args: what to do; when resuming, as stored in the run's folder.
        run_dir: folder of the run.
        resume: go on from the newest checkpoint.
        overwrite: delete a run that is there.

    Returns:
        Why training stopped early; empty if it did not.

    Raises:
        ConfigError: something is not acceptable; nothing was changed then.
        CheckpointError: nothing to resume from.
    """
    folder = RunFolder(run_dir)
    check_environment(args)
    if not resume:
        folder.check_new(overwrite)
    elif folder.all_checkpoints():
        folder.newest()
    else:
        resume = False  # stopped before the first checkpoint
    torch.set_num_threads(1)  # small networks: more threads only get in each other's way
    warm_up(args.choice)
    if resume:
        folder.remove_leftovers()
        folder.write_args(args)
    else:
        folder.begin(args)
    env = make_vec_env(args)
    try:
        return _learn(_resumed(env, folder) if resume else _new(args, env), args, folder)
    finally:
        env.close()


def _new(args: Args, env: VecEnv) -> PPO:
    """A model that has learned nothing yet."""
    if args.normalize_observations or args.normalize_reward:
        env = VecNormalize(
            env,
            norm_obs=args.normalize_observations,
            norm_reward=args.normalize_reward,
            gamma=args.gamma,
        )
    rate = args.learning_rate
    sizes = list(args.hidden_sizes)
    model = PPO(
        "MlpPolicy",
        env,
        learning_rate=LinearSchedule(rate, 0.0, 1.0) if args.decay_learning_rate else rate,
        n_steps=args.n_steps,
        batch_size=args.batch_size,
        n_epochs=args.n_epochs,
        gamma=args.gamma,
        gae_lambda=args.gae_lambda,
        clip_range=args.clip_range,
        ent_coef=args.ent_coef,
        vf_coef=args.vf_coef,
        max_grad_norm=args.max_grad_norm,
        target_kl=args.target_kl or None,
        policy_kwargs={
            "net_arch": {"pi": sizes, "vf": sizes},
            "log_std_init": args.log_std_init,
        },
        seed=args.seed,
        device="cpu",
    )
    if args.start_at_default:
        _start_at_default(model, args)
    return model


def _start_at_default(model: PPO, args: Args) -> None:
    """Makes the mean action the scenario's default settings, whatever is observed.

    The weights of the last layer are small from the start, so its bias decides.
    """
    position = torch.from_numpy(default_action(args.choice.make(args.layouts)))
    head: Any = model.policy.action_net
    with torch.no_grad():
        head.bias.copy_(position)


def _resumed(env: VecEnv, folder: RunFolder) -> PPO:
    """The model of the newest checkpoint."""
    path, checkpoint, complaints = folder.newest()
    for complaint in complaints:
        print(f"warning: left out: {complaint}", file=sys.stderr)
    print(f"going on from {path}", file=sys.stderr)
    return restore_model(restore_env(env, checkpoint, path), checkpoint, path)


def _learn(model: PPO, args: Args, folder: RunFolder) -> str:
    stop = Stop(args.max_minutes)
    checkpoints = Checkpoints(args, folder, stop)
    model.set_logger(configure(str(folder.curves), ["tensorboard"]))
    begun = time.monotonic()
    first = model.num_timesteps
    print(
        f"PPO in {args.env}: {args.whole_steps:,} steps"
        + (f", {first:,} done" if first else "")
        + f", {args.num_envs} environments, layouts 0 … {args.layouts - 1}, into {folder.path}",
        file=sys.stderr,
        flush=True,
    )
    with stop.on_interrupt():
        model.learn(
            args.whole_steps - first,
            callback=CallbackList([checkpoints, Curves(), make_progress(args.whole_steps)]),
            reset_num_timesteps=False,
        )
    if not checkpoints.has_stopped:
        checkpoints.save()
    done = model.num_timesteps // args.rollout_steps * args.rollout_steps - first
    seconds = time.monotonic() - begun
    print(f"{done:,} steps in {seconds:.0f} s", file=sys.stderr, flush=True)
    return stop.reason if checkpoints.has_stopped else ""


def _farewell(command: Command, reason: str) -> str:
    where = command.run_dir
    if reason:
        return f"stopped ({reason}); to go on: python -m training.ppo --resume {where}"
    return (
        f"done; to evaluate: python -m eval.evaluate --env {command.args.env} "
        f"--policies preset:default sb3:{where} --seeds 10000:10016 --out {where}/eval"
    )


if __name__ == "__main__":
    sys.exit(main())
