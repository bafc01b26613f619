"""The local model is loaded without a word on the terminal."""

import subprocess
import sys

LOAD = """
import logging, threading
from memory_core.embedding.local import LocalEmbedder

loading = threading.Thread(target=LocalEmbedder().load)
loading.start()
while loading.is_alive():
    logging.getLogger("command").info("not for the terminal")
    loading.join(0.001)
assert not logging.getLogger().handlers
"""


def test_what_is_logged_while_it_loads_is_not_printed() -> None:
    done = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
