"""Loads what imports alone do not load into the process that runs are forked from: see
`code_server`."""

from memory_core.text.tokens import count_tokens

# The first count loads the tokenizer's tables, which takes as long as many model calls.
count_tokens("warm")
