"""LOG_LEVEL for Dagster's own programs, which know it as an option of their command lines."""

import sys

from memory_core.kernel.settings import load_settings


def add_to_command_line(*options: str) -> None:
    """Append each option with our level, unless the command line has it already."""
    level = load_settings().log_level.lower()
    for option in options:
        if not any(word == option or word.startswith(f"{option}=") for word in sys.argv):
            sys.argv += [option, level]
