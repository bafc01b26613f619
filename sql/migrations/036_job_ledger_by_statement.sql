-- The ledger is written once for each statement instead of once for each row: a claim of many jobs
-- pays for one insert. Rows go with their job by a trigger, since a foreign key would look up
-- each job again that was just written.
ALTER TABLE job_event DROP CONSTRAINT fk_job_event_job_job_id;
DROP TRIGGER record_job_request ON event_jobs;
DROP TRIGGER record_job_transition ON event_jobs;
DROP FUNCTION record_job_transition();

-- What a row of the ledger says of a job. `memory.actor` names who acts; else the database role does.
CREATE FUNCTION job_event_detail(j event_jobs, requested BOOLEAN) RETURNS JSONB
    LANGUAGE sql STABLE
    RETURN jsonb_strip_nulls(jsonb_build_object(
        'run', j.locked_by, 'attempt', j.attempts, 'generation', j.generation, 'origin', j.origin,
        'error', j.last_error_code, 'message', left(j.last_error_message, 300),
        'due', CASE WHEN j.status = 'PENDING' THEN j.next_run_at END,
        'who', coalesce(nullif(current_setting('memory.actor', true), ''),
                        CASE WHEN requested THEN j.requested_by END, session_user)));

CREATE FUNCTION refuse_job_transition(job UUID, prev_status TEXT, next_status TEXT) RETURNS VOID
    LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'job % cannot go from % to %', job, coalesce(prev_status, 'nothing'),
        next_status USING ERRCODE = 'check_violation';
END $$;

CREATE FUNCTION record_job_requests() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM refuse_job_transition(n.job_id, NULL, n.status) FROM new_jobs n
    WHERE NOT EXISTS (SELECT 1 FROM job_transition t
                      WHERE t.prev_status IS NULL AND t.next_status = n.status);
    INSERT INTO job_event (job_id, tenant_id, prev_status, next_status, detail)
    SELECT n.job_id, n.tenant_id, NULL, n.status, job_event_detail(n, true) FROM new_jobs n;
    RETURN NULL;
END $$;

-- The plan is kept from the first statement on, which may have changed one job: without nested loops
-- it is a good one for a hundred thousand as well.
CREATE FUNCTION record_job_transitions() RETURNS trigger LANGUAGE plpgsql
    SET enable_nestloop = off AS $$
BEGIN
    INSERT INTO job_event (job_id, tenant_id, prev_status, next_status, detail)
    SELECT n.job_id, n.tenant_id, o.status, n.status,
           job_event_detail(n, n.generation <> o.generation)
    FROM old_jobs o JOIN new_jobs n USING (job_id)
    WHERE o.status <> n.status OR o.attempts <> n.attempts OR o.generation <> n.generation
       OR o.locked_by IS DISTINCT FROM n.locked_by;
    IF FOUND THEN
        PERFORM refuse_job_transition(n.job_id, o.status, n.status)
        FROM old_jobs o JOIN new_jobs n USING (job_id)
        LEFT JOIN job_transition t ON t.prev_status = o.status AND t.next_status = n.status
        WHERE t.next_status IS NULL
          AND (o.status <> n.status OR o.attempts <> n.attempts OR o.generation <> n.generation
               OR o.locked_by IS DISTINCT FROM n.locked_by);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER record_job_requests AFTER INSERT ON event_jobs
    REFERENCING NEW TABLE AS new_jobs
    FOR EACH STATEMENT EXECUTE FUNCTION record_job_requests();
CREATE TRIGGER record_job_transitions AFTER UPDATE ON event_jobs
    REFERENCING OLD TABLE AS old_jobs NEW TABLE AS new_jobs
    FOR EACH STATEMENT EXECUTE FUNCTION record_job_transitions();

CREATE FUNCTION forget_job_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM job_event e USING old_jobs o WHERE e.job_id = o.job_id;
    RETURN NULL;
END $$;
CREATE TRIGGER forget_job_events AFTER DELETE ON event_jobs REFERENCING OLD TABLE AS old_jobs
    FOR EACH STATEMENT EXECUTE FUNCTION forget_job_events();
