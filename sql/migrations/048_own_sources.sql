-- A source may have several documents: of users who did not see each other's when they stored it. A
-- user's own is the one that is meant, also when another comes into sight later.
DROP FUNCTION sources_of_artifacts(TEXT[]), sources_for_principal(TEXT[]);
CREATE FUNCTION sources_for_principal(uids TEXT[])
    RETURNS TABLE (artifact_uid TEXT, source_system TEXT, source_id TEXT, is_own BOOLEAN)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT s.artifact_uid, CASE WHEN v.seen THEN s.source_system ELSE '' END,
           CASE WHEN v.seen THEN s.source_id ELSE '' END, v.seen AND v.own
    FROM artifact_source s
    CROSS JOIN LATERAL (
        SELECT coalesce(bool_or(r.audience_id = ANY (audiences_of_principal())), false) AS seen,
               coalesce(bool_or(r.owner = principal_user()), false) AS own
        FROM artifact_revision r WHERE r.artifact_uid = s.artifact_uid AND r.is_latest
    ) v
    WHERE s.artifact_uid = ANY (uids)
$$;
CREATE FUNCTION sources_of_artifacts(uids TEXT[])
    RETURNS TABLE (artifact_uid TEXT, source_system TEXT, source_id TEXT, is_own BOOLEAN)
    LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF current_user = 'memory_app' THEN
        RETURN QUERY SELECT * FROM sources_for_principal(uids);
    ELSE
        RETURN QUERY SELECT s.artifact_uid, s.source_system, s.source_id, false
                     FROM artifact_source s WHERE s.artifact_uid = ANY (uids);
    END IF;
END $$;

-- Whether another user than the principal has ever kept something to itself, or to a few, in the
-- tenant. While none has, ids of documents are whose they seem to be.
CREATE FUNCTION has_other_users() RETURNS BOOLEAN
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT EXISTS (SELECT 1 FROM audience_member m
                   WHERE m.tenant_id = current_tenant()
                     AND m.member NOT IN ('org', 'user:' || coalesce(principal_user(), 'local')))
$$;
