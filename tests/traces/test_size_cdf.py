from pathlib import Path

import numpy as np
import pytest

from roce_gym.errors import ConfigError, TraceFileError
from roce_gym.traces import make_size_cdf, poisson_flows, read_size_cdf

SAMPLES = Path(__file__).resolve().parents[3] / "shared/samples/hpcc"
SIMPLE = "0 0\n1000 50\n5000 100\n"


def write(folder, text):
    path = folder / "sizes.txt"
    path.write_text(text)
    return path


def seed(number=1):
    return np.random.SeedSequence(number)


def test_mean_and_quantiles(tmp_path):
    """Half of the flows have 500 bytes on average, half 3,000."""
    cdf = read_size_cdf(write(tmp_path, SIMPLE))
    assert cdf.mean_bytes == 0.5 * 500 + 0.5 * 3000
    assert cdf.sizes(np.array([0, 0.25, 0.5, 0.75])).tolist() == [1, 500, 1000, 3000]
    as_shares = read_size_cdf(write(tmp_path, "0 0\n1000 .5\n5000 1\n"))
    assert as_shares.mean_bytes == cdf.mean_bytes


def test_first_share_is_that_of_one_size():
    cdf = make_size_cdf([(100, 40), (300, 100)])
    assert cdf.mean_bytes == 0.4 * 100 + 0.6 * 200
    assert cdf.sizes(np.array([0.0, 0.39, 0.7])).tolist() == [100, 100, 200]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("1000 50", "1000", 2, "2 fields expected (bytes share), found 1"),
        ("1000 50", f"{10**18} 50", 2, f"bytes = {10**18} is not allowed"),
        ("1000 50", "-1 50", 2, "bytes = -1 is not allowed"),
        ("1000 50", "1000 101", 2, "share = 101 is not allowed"),
        ("1000 50", "1000 nan", 2, "share = 'nan' is not a number"),
        ("1000 50", "6000 50", 3, "5000 100 after 6000 50; allowed: neither may fall"),
        ("5000 100", "5000 40", 3, "5000 40 after 1000 50; allowed: neither may fall"),
        ("5000 100", "5000 99", 3, "the last share is 99; allowed: 100 (percent) or 1"),
        (SIMPLE, "\n", 1, "0 points"),
        (SIMPLE, "0 100", 1, "the largest size is 0 bytes"),
        (SIMPLE, "0 0\n" * 70_000, 65_537, "more than 65536 points"),
    ],
)
def test_faults_name_file_line_and_value(tmp_path, old, new, line, message):
    path = write(tmp_path, SIMPLE.replace(old, new))
    with pytest.raises(TraceFileError) as caught:
        read_size_cdf(path)
    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert message in str(caught.value)


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="sample files are absent")
@pytest.mark.parametrize(("name", "mean"), [("WebSearch", 1_711_250), ("FbHdp", 120_420.75)])
def test_samples(name, mean):
    """Means by hand: half the sum of (a + b) × (share of b - share of a)."""
    assert read_size_cdf(SAMPLES / f"{name}_distribution.txt").mean_bytes == pytest.approx(mean)


def test_poisson__load_rate_and_sizes():
    """30 % of 100 Gb/s at 8 hosts for 100 ms is 3 GB; standard errors are about 1 %."""
    cdf = make_size_cdf([(0, 0), (1000, 50), (50_000, 100)])
    until_ps = 10**11
    flows = poisson_flows(cdf, 0.3, 10**11, 8, seed(), until_ps)
    expected = 8 * 0.3 * 1e11 / 8 * 0.1 / cdf.mean_bytes
    assert flows.bytes.size == pytest.approx(expected, rel=0.01)
    assert flows.bytes.sum() == pytest.approx(8 * 0.3 * 1e11 / 8 * 0.1, rel=0.02)
    gaps = np.diff(flows.start_ps)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.02)  # exponential
    assert (gaps >= 0).all() and flows.start_ps[-1] < until_ps
    assert (flows.src != flows.dst).all()
    pairs = np.bincount(flows.src * 8 + flows.dst, minlength=64).reshape(8, 8)
    assert pairs.diagonal().tolist() == [0] * 8
    off = pairs[~np.eye(8, dtype=bool)]
    assert (off > 0.9 * flows.src.size / 56).all() and (off < 1.1 * flows.src.size / 56).all()


def test_poisson__seed_and_end():
    """Another seed draws other flows; a later end only adds some."""
    cdf = make_size_cdf([(10_000, 100)])
    short, long, other = (
        poisson_flows(cdf, 0.5, 10**11, 4, seed(n), until)
        for n, until in ((1, 10**9), (1, 2 * 10**9), (2, 10**9))
    )
    count = short.src.size
    assert 0 < count < long.src.size
    for a, b in zip(short, long, strict=True):
        assert a.tolist() == b[:count].tolist()
    assert short.start_ps.tolist() != other.start_ps.tolist()
    few = poisson_flows(cdf, 0.5, 10**11, 4, seed(), num_flows=7)
    assert few.start_ps.tolist() == short.start_ps[:7].tolist()


def test_poisson__too_many_flows():
    cdf = make_size_cdf([(1, 100)])
    with pytest.raises(ConfigError, match=r"about 1e\+13 flows; allowed: 1 … 1048576"):
        poisson_flows(cdf, 0.8, 10**11, 1000, seed(), 10**12)
    with pytest.raises(ConfigError, match="about inf flows"):
        poisson_flows(cdf, 0.8, 10**11, 1000, seed())
    with pytest.raises(ConfigError, match="allowed: a higher load"):
        poisson_flows(make_size_cdf([(2**50, 100)]), 1e-9, 10**6, 2, seed(), num_flows=10)
