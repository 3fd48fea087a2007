import itertools
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import HumanRendering, RenderCollection
from small import SMALL

from roce_gym.config import validate_scenario
from roce_gym.env import RoceEnv
from roce_gym.render.canvas import PAUSED, TENANTS, use_color
from roce_gym.render.layout import make_layout
from roce_gym.scenario_file import draw, load_raw
from roce_gym.topology import build_network

AREA = (0.0, 0.0, 800.0, 400.0)
FABRIC = (slice(50, 405), slice(0, 860))
"""Rows and columns of a picture in which the fabric is."""


def frames(steps=6, action=-1.0, raw=SMALL):
    env = RoceEnv(raw, render_mode="rgb_array")
    assert env.render() is None
    env.reset(seed=0)
    out = [env.render()]
    for _ in range(steps):
        env.step(np.full(env.action_space.shape, action))
        out.append(env.render())
    return env, out


def count(frame, color):
    return int((frame == np.array(color, np.uint8)).all(axis=-1).sum())


def test_frames__form_and_change():
    _, shown = frames()
    assert all(f.shape == (720, 1280, 3) and f.dtype == np.uint8 for f in shown)
    assert len({f.tobytes() for f in shown}) == len(shown)
    shown[-1][:] = 0  # is the caller's own


def test_same_episode_same_pictures():
    assert all((a == b).all() for a, b in zip(frames()[1], frames()[1], strict=True))


def test_hosts_have_their_tenants_colours():
    _, shown = frames(0)
    start = shown[0][FABRIC]
    for color in TENANTS[:2]:
        assert count(start, color) > 200
    assert count(start, TENANTS[2]) == 0


def test_pauses_and_busy_links_are_seen_when_there_are_any():
    env, shown = frames(8)  # smallest thresholds: bursts are paused
    assert env._last_info["episode_pfc_frames_per_s"] > 0
    assert count(shown[0][FABRIC], PAUSED) == 0
    assert max(count(f[FABRIC], PAUSED) for f in shown[1:]) > 20
    calm = RoceEnv(SMALL, render_mode="rgb_array")
    calm.reset(seed=0, options={"params": {"tenants.burst.jobs.0.bytes": 1000}})
    calm.step(np.ones(20))
    assert calm._last_info["pfc_frames_per_s"] == 0
    assert count(calm.render()[FABRIC], PAUSED) == 0
    darkest = [f[FABRIC].min() for f in shown]
    assert use_color(1.0) != use_color(0.0) and darkest[0] <= darkest[1] + 40


def test_a_queue_is_a_bar_of_its_length():
    env, _ = frames(0)
    env.step(np.ones(20))
    interval = env.last_interval
    before = count(env.render()[FABRIC], TENANTS[0])
    interval.queue_max_bytes[:] = 0
    interval.queue_max_bytes[env.fabric.network.from_switch, 0] = 250_000  # a full bar
    full = count(env.render()[FABRIC], TENANTS[0])
    interval.queue_max_bytes[env.fabric.network.from_switch, 0] = 125_000
    half = count(env.render()[FABRIC], TENANTS[0])
    interval.queue_max_bytes[:] = 0
    empty = count(env.render()[FABRIC], TENANTS[0])
    assert before >= empty
    assert (half - empty) == pytest.approx((full - empty) / 2, rel=0.12) and full - empty > 500


@pytest.mark.parametrize("name", ["rail_ring", "pfc_deadlock", "eight_tenants", "incast_waves"])
def test_layout__other_fabrics(name):
    network = build_network(validate_scenario(draw(load_raw(name), 0)).topology)
    layout = make_layout(network, AREA)
    assert set(layout.host) == set(range(network.num_places))
    xs = sorted(x for x, _ in layout.host.values())
    assert np.diff(xs).min() >= layout.host_size  # side by side
    boxes = sorted(layout.switch.values(), key=lambda box: (box[1], box[0]))
    for a, b in itertools.pairwise(boxes):
        assert a[1] != b[1] or a[2] <= b[0]  # none covers another
    for link in np.flatnonzero(~network.is_nvlink):
        for node in (network.link_src[link], network.link_dst[link]):
            if node >= network.num_hosts:
                x, y = layout.port[link, node]
                left, top, right, bottom = layout.switch[node]
                assert left <= x <= right and y in (top, bottom)


def test_constructing_with_a_render_mode_imports_nothing():
    code = (
        "import sys, gymnasium, roce_gym\n"
        "gymnasium.make('RoCE/NoisyNeighbor-v0', render_mode='rgb_array')\n"
        "print([m for m in sys.modules if m.startswith(('PIL', 'matplotlib', 'pygame'))"
        " or m.startswith('roce_gym.render')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr


def test_without_pillow_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    env = RoceEnv(SMALL, render_mode="rgb_array")
    env.reset(seed=0)
    with pytest.raises(gymnasium.error.DependencyNotInstalled, match=r"roce-gym\[report\]"):
        env.render()


def test_gymnasiums_wrappers(tmp_path):
    env = RenderCollection(RoceEnv(SMALL, render_mode="rgb_array"))
    env.reset(seed=0)
    for _ in range(3):
        env.step(env.action_space.sample())
    assert len(env.render()) == 4


def test_human__by_gymnasiums_wrapper(monkeypatch):
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = HumanRendering(RoceEnv(SMALL, render_mode="rgb_array"))
    env.reset(seed=0)
    env.step(env.action_space.sample())
    env.close()


def test_record_video(tmp_path):
    pytest.importorskip("moviepy")
    from gymnasium.wrappers import RecordVideo

    env = RecordVideo(
        RoceEnv(SMALL, render_mode="rgb_array"), str(tmp_path / "films"), disable_logger=True
    )
    env.reset(seed=0)
    for _ in range(10):
        env.step(env.action_space.sample())
    env.close()
    (film,) = (tmp_path / "films").glob("*.mp4")
    assert film.stat().st_size > 5_000
