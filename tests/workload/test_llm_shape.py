"""Parameters and operations against published numbers."""

import pytest

from roce_gym.config.llm import MODELS, ModelShape
from roce_gym.workload.llm.layout import layers_of_stages
from roce_gym.workload.llm.shape import (
    active_parameters,
    attention_flops,
    ffn_flops,
    num_parameters,
    output_flops,
    training_flops,
)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        # Sizes of the published checkpoints; GPT-3: Brown et al. 2020, table D.1, 174,600 million.
        ("llama3_8b", 8_030_261_248),
        ("llama3_70b", 70_553_706_496),
        ("llama3_405b", 405_853_388_800),
        ("mixtral_8x7b", 46_702_792_704),
        ("gpt3_175b", 174_604_259_328),
    ],
)
def test_parameters(name, parameters):
    assert num_parameters(MODELS[name]) == parameters


def test_mixtral_uses_13_billion_parameters_a_token():
    assert active_parameters(MODELS["mixtral_8x7b"]) == pytest.approx(12.9e9, rel=0.002)
    assert active_parameters(MODELS["llama3_8b"]) == num_parameters(MODELS["llama3_8b"])


@pytest.mark.parametrize(
    ("name", "tokens", "flops"),
    [
        # Brown et al. 2020, table D.1: 300 billion tokens.
        ("gpt3_175b", 300e9, 3.14e23),
        # Grattafiori et al. 2024, section 3.2.1: 15.6 trillion tokens.
        ("llama3_405b", 15.6e12, 3.8e25),
    ],
)
def test_training_flops_against_published_totals(name, tokens, flops):
    # Both are 6 x parameters x tokens, without attention, which nearly vanishes in sequences of 1.
    assert training_flops(MODELS[name], 1) * tokens == pytest.approx(flops, rel=0.01)


def test_training_flops_against_the_formula_of_megatron():
    # Narayanan et al., SC 2021, appendix, without recomputation: 72 l h^2 (1 + s / 6h + V / 12lh).
    s, layers, h, vocabulary = 2048, 96, 12288, 50_257
    expected = 72 * layers * h**2 * (1 + s / (6 * h) + vocabulary / (12 * layers * h))
    assert training_flops(MODELS["gpt3_175b"], s) == pytest.approx(expected, rel=1e-12)


def test_days_of_gpt3_on_1024_a100():
    # Narayanan et al., SC 2021, section 5.1: 300 billion tokens at 140 TFLOP/s a GPU: 34 days. They
    # count the forward pass twice, as it is recomputed.
    flops = training_flops(MODELS["gpt3_175b"], 2048) * 4 / 3
    assert flops * 300e9 / (1024 * 140e12) / 86_400 == pytest.approx(34, rel=0.03)


def test_flops_by_hand():
    shape = ModelShape(
        layers=3,
        hidden=8,
        ffn_hidden=20,
        heads=4,
        kv_heads=2,
        vocabulary=50,
        experts=4,
        experts_per_token=2,
    )
    # query and output 8 x 8, key and value 8 x 4; scores and values 2 x 2 x 10 x 8
    assert attention_flops(shape, 10) == 2 * (64 + 64 + 32 + 32) + 320
    assert ffn_flops(shape) == 2 * 2 * 3 * 160 + 2 * 8 * 4
    assert output_flops(shape) == 2 * 8 * 50
    # a layer: norms 2 x 8, matrices 192, router 32, experts 4 x 480; ends: 2 x 400, norm 8
    assert num_parameters(shape) == 3 * (16 + 192 + 32 + 1920) + 808
    assert active_parameters(shape) == 3 * (16 + 192 + 32 + 960) + 808


def test_a_slice_keeps_the_share_of_the_embeddings():
    shape = MODELS["llama3_8b"]
    assert num_parameters(shape, 8) * 4 == pytest.approx(num_parameters(shape), rel=1e-5)


def test_layers_of_stages():
    # Grattafiori et al. 2024, section 3.3.2: the first and last of 16 stages have a layer less.
    assert layers_of_stages(126, 16) == [7, *[8] * 14, 7]
    assert layers_of_stages(32, 4) == [8] * 4
    assert layers_of_stages(7, 2) == [3, 4]
    assert layers_of_stages(5, 1) == [5]
