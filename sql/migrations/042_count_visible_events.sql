-- To count all latest events that a principal sees, as a search without words or filters does: a
-- hundredth of the pages of the table, since its keys are few.
DROP INDEX idx_event_entry_is_latest;
CREATE INDEX idx_event_entry_is_latest ON event_entry (audience_id, is_latest) WHERE is_latest;
