"""What the process that runs are forked from loads beyond modules: see `code_server`."""

from memory_core.text.tokens import count_tokens

# The first count reads the tokenizer's tables, which takes as long as many model calls.
count_tokens("warm")
