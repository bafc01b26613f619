"""The versions that this deployment extracts with, computed from the settings."""

from memory_core.extraction import prompts
from memory_core.kernel.settings import Settings
from memory_core.queue.versions import Versions


def current(settings: Settings) -> Versions:
    if not settings.uses_openai_extractor:
        from memory_core.extraction.rules import VERSION

        return Versions("rules", "rules", VERSION, "none")
    extract, merge = (prompts.load(name, settings.prompts_dir) for name in prompts.NAMES)
    return Versions("openai", settings.openai_event_model, extract.version, merge.version)
