"""What the index works with."""

from typing import Protocol

from memory_core.embedding import Embedder
from memory_core.index.store import VectorStore
from memory_core.kernel.database import Database


class Parts(Protocol):
    """A `Runtime` is one."""

    @property
    def database(self) -> Database: ...
    @property
    def vectors(self) -> VectorStore: ...
    @property
    def embedder(self) -> Embedder: ...
