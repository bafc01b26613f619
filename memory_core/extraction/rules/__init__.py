"""Rules: events from cues, sections and turns, for everybody who has no model."""

from memory_core.extraction.rules.extractor import VERSION, RulesExtractor, propose

__all__ = ["VERSION", "RulesExtractor", "propose"]
