"""LOG_LEVEL for Dagster's own programs, which take it as a command-line option."""

import sys

from memory_core.kernel.settings import load_settings


def add_to_command_line(*options: str) -> None:
    """Append each option with our level, unless the command line already has it."""
    level = load_settings().log_level.lower()
    for option in options:
        if not any(word == option or word.startswith(f"{option}=") for word in sys.argv):
            sys.argv += [option, level]
