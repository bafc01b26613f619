"""One module per tool family. A tool parses, calls `memory_core`, and shapes the answer."""
