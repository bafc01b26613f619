"""One whole stack for the tests of a module."""

from collections.abc import Iterator

import pytest

from tests.e2e.stacks import Stack


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A whole stack that the tests of a module share."""
    with Stack(tmp_path_factory.mktemp("stack")) as stack:
        yield stack
