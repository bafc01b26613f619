-- A document has one audience: when its owner changes who may see it, by a new revision or by a label,
-- its other revisions follow. Else who saw the document before would go on reading what it was.
CREATE FUNCTION share_audience() RETURNS TRIGGER
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE artifact_revision
    SET visibility_scope = NEW.visibility_scope, visible_to = NEW.visible_to,
        audience_id = NEW.audience_id
    WHERE artifact_uid = NEW.artifact_uid AND revision_id <> NEW.revision_id
      AND audience_id <> NEW.audience_id;
    RETURN NULL;
END $$;
CREATE TRIGGER share_audience AFTER UPDATE ON artifact_revision
    FOR EACH ROW WHEN (OLD.audience_id <> NEW.audience_id) EXECUTE FUNCTION share_audience();
CREATE TRIGGER share_audience_of_new AFTER INSERT ON artifact_revision
    FOR EACH ROW EXECUTE FUNCTION share_audience();
COMMENT ON TRIGGER share_audience ON artifact_revision IS 'All revisions of a document are seen by the same users.';
COMMENT ON TRIGGER share_audience_of_new ON artifact_revision IS 'All revisions of a document are seen by the same users.';

-- Documents whose revisions were for different audiences: that of the latest holds.
UPDATE artifact_revision r SET audience_id = l.audience_id
FROM artifact_revision l
WHERE l.artifact_uid = r.artifact_uid AND l.is_latest AND NOT r.is_latest
  AND r.audience_id <> l.audience_id;
