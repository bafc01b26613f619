"""The environment of child processes that need no secrets."""

import os

# What any program needs to find itself, its libraries, its language and its clock.
_NEEDED = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR"),
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH"),
    }
)


def minimal_environment() -> dict[str, str]:
    """An allow-list of our environment: keys, passwords and settings are not passed on."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in _NEEDED or name.startswith("LC_")
    }
