"""Verbs by what they say about an event.

Cues must distinguish "Alice will send" (a promise) from "The cache will send" (a description). No
word list can do that for every subject, so these lists have verbs that are usually said of people.
"""

from memory_core.extraction.rules.word_lists import words

PROMISE = words("verbs", "promise")
DELIVER = words("verbs", "deliver")
DONE = words("verbs", "done")
DONE_STRONG = words("verbs", "done_strong")
CHANGED = words("verbs", "changed")
CONDUCT = words("verbs", "conduct")
IMPERATIVE = PROMISE + words("verbs", "imperative")
SMALL_TALK = words("verbs", "small_talk")
