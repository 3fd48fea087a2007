import os

import pytest

from agents.checkpoint import (
    FOLDER,
    Checkpoint,
    checkpoint_path,
    find_checkpoint,
    list_checkpoints,
    read_checkpoint,
    write_checkpoint,
)
from roce_gym.errors import CheckpointError

FULL = Checkpoint({"algorithm": "PPO", "steps": 7}, b"model" * 99, b"statistics", b"state")


def test_what_is_written_is_read(tmp_path):
    for checkpoint in (FULL, Checkpoint({"algorithm": "PPO", "steps": 7}, b"model")):
        write_checkpoint(tmp_path / "a.zip", checkpoint)
        read = read_checkpoint(tmp_path / "a.zip")
        assert read.about.items() >= checkpoint.about.items()
        assert (read.model, read.normalizer, read.state) == (
            checkpoint.model,
            checkpoint.normalizer,
            checkpoint.state,
        )


def test_the_newest_checkpoint_of_a_run_is_found(tmp_path):
    for steps in (20, 100, 3):
        write_checkpoint(checkpoint_path(tmp_path / FOLDER, steps), FULL)
    (tmp_path / FOLDER / ".step_0000000200.zip.1.tmp").write_bytes(b"unfinished")
    newest = checkpoint_path(tmp_path / FOLDER, 100)
    assert find_checkpoint(tmp_path) == find_checkpoint(tmp_path / FOLDER) == newest
    assert find_checkpoint(newest) == newest
    assert len(list_checkpoints(tmp_path / FOLDER)) == 3


@pytest.mark.parametrize("damage", ["empty", "noise", "cut", "flipped", "other zip"])
def test_damaged_files_are_named_with_what_is_expected(tmp_path, damage):
    path = tmp_path / "step_0000000007.zip"
    write_checkpoint(path, FULL)
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        content[content.index(b"modelmodel")] ^= 1
    elif damage == "cut":
        content = content[: len(content) // 2]
    elif damage == "other zip":
        import zipfile

        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.txt", "b")
        content = bytearray(path.read_bytes())
    else:
        content = bytearray(b"" if damage == "empty" else b"noise" * 50)
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"step_0000000007\.zip: is damaged.*expected: a"):
        read_checkpoint(path)


def test_missing_files_are_named_with_what_is_expected(tmp_path):
    with pytest.raises(CheckpointError, match=r"nowhere: does not exist; expected: a"):
        find_checkpoint(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match=r"holds no checkpoint; expected: a"):
        find_checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match=r"nowhere: cannot be read"):
        read_checkpoint(tmp_path / "nowhere")


def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "a.zip"
    write_checkpoint(path, FULL)

    def fail(*_):
        raise OSError("disk is full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk is full"):
        write_checkpoint(path, Checkpoint({"algorithm": "PPO", "steps": 8}, b""))
    monkeypatch.undo()
    assert read_checkpoint(path).about["steps"] == 7
    assert [p.name for p in tmp_path.iterdir()] == ["a.zip"]
