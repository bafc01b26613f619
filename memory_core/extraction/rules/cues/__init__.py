"""Cues: the phrases that tell an event, one table for each category."""

from memory_core.extraction.rules.cues import (
    change,
    collaboration,
    commitment,
    decision,
    execution,
    feedback,
    risk,
    stakeholder,
)
from memory_core.extraction.rules.cues.cue import Cue

# The order settles ties: what was decided or promised matters more than that it was talked about.
CUES: tuple[Cue, ...] = (
    *decision.CUES,
    *commitment.CUES,
    *stakeholder.CUES,
    *change.CUES,
    *execution.CUES,
    *risk.CUES,
    *feedback.CUES,
    *collaboration.CUES,
)
