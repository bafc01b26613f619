"""The stages of an extraction, in order. Each is an asset of the same name."""

CHUNK_TEXT, CHUNK_EXTRACTIONS, CANONICAL_EVENTS, STORED_EVENTS, EVENT_INDEX = STAGES = (
    "chunk_text",
    "chunk_extractions",
    "canonical_events",
    "stored_events",
    "event_index",
)
