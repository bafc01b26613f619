"""Confidence: how an event was recognised, so that a reader can filter by it.

0.95  LABELLED   the writer named it: "Decision: ...", a checked box, an owner field
0.90  SECTION    an item below a heading that names the kind: "Action items", "Risks"
0.85  EXPLICIT   a phrase with hardly another reading: "we decided to", "Ann promised to"
0.80  STRONG     a telling verb with a person or group as its subject
0.75  CLEAR      a telling verb whose subject is a thing, or is left out
0.65  LIKELY     a phrase that is usually meant so
0.55  WEAK       a hint; nothing weaker is proposed
"""

LABELLED = 0.95
SECTION = 0.9
EXPLICIT = 0.85
STRONG = 0.8
CLEAR = 0.75
LIKELY = 0.65
WEAK = 0.55
