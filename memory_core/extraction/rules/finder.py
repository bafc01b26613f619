"""The finder: the drafts of a sentence, from its label, its section and its phrases.

The order of precedence is: a label before the sentence, the section of the sentence, the phrases in
it. Of several phrases the most certain wins, and of equally certain ones the first in `cues.CUES`.
"""

from memory_core.extraction.model import Category
from memory_core.extraction.rules import guards
from memory_core.extraction.rules.blocks import Block
from memory_core.extraction.rules.cue_matches import CueMatches
from memory_core.extraction.rules.drafts import EventDraft
from memory_core.extraction.rules.entries import Entries
from memory_core.extraction.rules.manner import Manner
from memory_core.extraction.rules.people import Roster
from memory_core.extraction.rules.sections import SectionKind
from memory_core.extraction.rules.sentences import Sentence


class Finder:
    def __init__(self, text: str, roster: Roster, manner: Manner) -> None:
        self.entries = Entries(text, roster, manner)
        self.hits = CueMatches(text, roster, manner)

    def find(self, sentence: Sentence, block: Block, first: bool) -> list[EventDraft]:
        """The drafts of a sentence; `first` if it opens its block."""
        if guards.is_question(sentence.words) or guards.gives_orders(sentence.words):
            return []
        labelled = self.entries.labelled(sentence, block)
        if labelled is not None:
            return labelled
        if block.section.kind in (SectionKind.ASIDE, SectionKind.ATTENDEES):
            return []
        entry = self.entries.entry(sentence, block, first)
        if entry is not None and entry.category is not Category.DECISION:
            return [entry]
        drafts = [d for clause in sentence.clauses() for d in self.hits.find(clause, block)]
        if entry is None:
            return drafts
        if any(d.category is entry.category and d.confidence > entry.confidence for d in drafts):
            return drafts
        # A decision about who does what also says who is involved.
        return [entry, *(d for d in drafts if d.category is Category.STAKEHOLDER)]
