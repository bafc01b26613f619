"""Turns: in transcripts and chats, a line with the speaker's name begins each turn."""

import regex

_CLOCK = r"\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d{1,3})?(?:[ ]?[AaPp][Mm])?"
_FIRST_NAME = r"[\p{Lu}\p{Lo}][\p{L}\p{M}\p{Nd}.'’_-]{0,30}"
_FURTHER_NAME = r"[ ][\p{Lu}\p{Lo}(][\p{L}\p{M}.'’)_-]{0,30}"
_SPEAKER = rf"{_FIRST_NAME}(?:{_FURTHER_NAME}){{0,3}}(?:[ ][\[(]{_CLOCK}[\])])?"
_COLON = r"(?:[:：](?:\*\*|__)|(?:\*\*|__)?[:：])(?=\s|\p{Lo})"

# Every repetition is bounded or possessive, so that the scan is linear on any text.
SPEAKER_TURN = regex.compile(
    rf"(?:[\[(]?{_CLOCK}[\])]?[ ][-–—]?[ ]?)?"
    rf"(?:<[^\s<>]{{1,40}}>[ ]|(?:\*\*|__)?{_SPEAKER}{_COLON})"
)
# Chats with an assistant name the roles, often in lower case or as headings.
_ROLE = r"(?:\#{1,6}[ ])?(?:\*\*|__)?(?i:user|assistant|human|system|bot|ai|me|you)"
_START = regex.compile(
    rf"{SPEAKER_TURN.pattern}|{_ROLE}(?:{_COLON}|(?:\*\*|__)?[ ]{{0,4}}(?=\n|$))"
)


def turn_starts(text: str) -> list[int]:
    """The positions where turns begin; empty for a text without turns."""
    starts = []
    place = 0
    while True:
        if _START.match(text, place):
            starts.append(place)
        place = text.find("\n", place) + 1
        if place == 0:
            return starts
