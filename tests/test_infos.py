import numpy as np

from roce_gym.infos import batch_infos


def test_numbers_arrays_objects_and_dictionaries():
    infos = [
        {"x": 1.5, "n": 2, "ok": True, "v": np.array([1, 2], np.int32), "s": "a", "d": {"y": 3.0}},
        None,
        {"x": 0.5, "n": 2**60, "ok": False, "v": np.ones(2, np.int32), "s": "b", "d": {"y": 4.0}},
    ]
    out = batch_infos(infos, infos[0])
    assert list(out) == [x for key in infos[0] for x in (key, f"_{key}")]
    assert out["x"].tolist() == [1.5, 0.0, 0.5] and out["x"].dtype == np.float64
    assert out["n"].tolist() == [2, 0, 2**60] and out["n"].dtype == np.int64
    assert out["ok"].tolist() == [True, False, False] and out["ok"].dtype == bool
    assert out["v"].tolist() == [[1, 2], [0, 0], [1, 1]] and out["v"].dtype == np.int32
    assert out["s"].tolist() == ["a", None, "b"] and out["s"].dtype == object
    assert out["d"]["y"].tolist() == [3.0, 0.0, 4.0]
    for mask in (out["_x"], out["_d"], out["d"]["_y"]):
        assert mask.tolist() == [True, False, True]
    out["_x"][:] = False
    assert out["_n"].any()
