"""Confidence: how an event was recognised, and how often such events are right.

0.95  LABELLED   the writer named it: "Decision: …", an owner field, a dated entry of a history
0.90  SECTION    an item below a heading that names the kind, with what such an item needs
0.85  EXPLICIT   a phrase with hardly another reading: "we decided to", "Ann promised to"
0.80  STRONG     a reporting verb with a person or group as its subject and a thing as its object
0.75  CLEAR      a reporting verb whose subject is a thing, or is left out
0.65  LIKELY     usually meant so, but two in five are not: below the usual MIN_CONFIDENCE
0.55  WEAK       a hint; nothing weaker is proposed

The figures were set by reading: `python -m benchmarks.bench_rules` prints the reliability table of
the judged events. At least nine in ten events with 0.8 or more are right.
"""

LABELLED = 0.95
SECTION = 0.9
EXPLICIT = 0.85
STRONG = 0.8
CLEAR = 0.75
LIKELY = 0.65
WEAK = 0.55

# Subtracted for each missing piece.
STEP = 0.1
