"""Rules: an extractor without a model. It recognises events by phrases, sections and turns."""

from memory_core.extraction.rules.extractor import VERSION, RulesExtractor, propose

__all__ = ["VERSION", "RulesExtractor", "propose"]
