-- Dagster's partitions and runs, and what its sensors and schedules wait for.

-- name: partition_tables_exist
-- Dagster creates its tables at its first start.
SELECT to_regclass('dagster.dynamic_partitions') IS NOT NULL
   AND to_regclass('dagster.run_tags') IS NOT NULL
   AND to_regclass('dagster.bulk_actions') IS NOT NULL AS exists;

-- name: count_live_partitions
SELECT count(*) AS live FROM dagster.dynamic_partitions WHERE partitions_def_name = 'revisions';

-- name: backfill_in_progress
-- Only Dagster knows which keys the backfill will still request.
SELECT EXISTS (SELECT 1 FROM dagster.bulk_actions
               WHERE status IN ('REQUESTED', 'CANCELING', 'FAILING')) AS exists;

-- name: retire_partitions
-- First keys without a revision, then superseded revisions, then the rest, oldest first. Failed
-- ones stay visible while there are others to retire. A key with an open job is never retired, nor
-- one that an unfinished run names or has in its range: the run could not start without the ends of
-- its range.
WITH held AS (
    SELECT t.run_id, t.key, t.value FROM dagster.run_tags t
    JOIN dagster.runs u USING (run_id)
    WHERE u.status NOT IN ('SUCCESS', 'FAILURE', 'CANCELED')
      AND t.key IN ('dagster/partition', 'dagster/asset_partition_range_start',
                    'dagster/asset_partition_range_end')
), ranges AS (
    SELECT min(p.id) AS first, max(p.id) AS last
    FROM held h JOIN dagster.dynamic_partitions p
      ON p.partitions_def_name = 'revisions' AND p.partition = h.value
    GROUP BY h.run_id
), chosen AS (
    SELECT p.id
    FROM dagster.dynamic_partitions p
    LEFT JOIN artifact_revision r ON r.partition_key = p.partition
    LEFT JOIN event_jobs j ON j.artifact_uid = r.artifact_uid AND j.revision_id = r.revision_id
                          AND j.job_type = 'extract_events'
    WHERE p.partitions_def_name = 'revisions'
      AND (j.status IS NULL OR j.status IN ('DONE', 'FAILED', 'CANCELED'))
      AND NOT EXISTS (SELECT 1 FROM ranges WHERE p.id BETWEEN ranges.first AND ranges.last)
    ORDER BY r.partition_key IS NOT NULL, r.is_latest, j.status IS NOT DISTINCT FROM 'FAILED',
             r.latest_since, p.id
    LIMIT %(limit)s
)
DELETE FROM dagster.dynamic_partitions p USING chosen WHERE p.id = chosen.id;

-- name: history_tables_exist
SELECT to_regclass('dagster.runs') IS NOT NULL
   AND to_regclass('dagster.event_logs') IS NOT NULL
   AND to_regclass('dagster.asset_check_executions') IS NOT NULL
   AND to_regclass('dagster.dynamic_partitions') IS NOT NULL AS exists;

-- name: prunable_runs
-- Old, finished runs that are not the last known run of a listed partition (or of an asset without
-- partitions): the last materialisation of a partition, and the last run that was to make it,
-- decide how it is shown.
SELECT u.run_id
FROM dagster.runs u
WHERE u.status IN ('SUCCESS', 'FAILURE', 'CANCELED')
  AND coalesce(u.end_time, extract(epoch FROM u.update_timestamp AT TIME ZONE 'UTC'))
      < extract(epoch FROM now() - make_interval(days => %(days)s))
  AND u.run_id <> ALL(%(skip)s)
  AND NOT EXISTS (
      SELECT 1 FROM dagster.event_logs e
      WHERE e.run_id = u.run_id
        AND e.dagster_event_type IN ('ASSET_MATERIALIZATION', 'ASSET_MATERIALIZATION_PLANNED')
        AND e.asset_key IS NOT NULL
        AND CASE WHEN e.partition IS NULL THEN NOT EXISTS (
                SELECT 1 FROM dagster.event_logs later
                WHERE later.asset_key = e.asset_key AND later.partition IS NULL
                  AND later.dagster_event_type = e.dagster_event_type AND later.id > e.id)
            ELSE EXISTS (
                SELECT 1 FROM dagster.dynamic_partitions p
                WHERE p.partitions_def_name = 'revisions' AND p.partition = e.partition)
            AND NOT EXISTS (
                SELECT 1 FROM dagster.event_logs later
                WHERE later.asset_key = e.asset_key AND later.partition = e.partition
                  AND later.dagster_event_type = e.dagster_event_type AND later.id > e.id) END)
ORDER BY u.id
LIMIT %(limit)s;

-- name: prune_check_results
DELETE FROM dagster.asset_check_executions c
WHERE c.id IN (
    SELECT old.id FROM dagster.asset_check_executions old
    WHERE old.create_timestamp < (now() AT TIME ZONE 'UTC') - make_interval(days => %(days)s)
      AND NOT EXISTS (SELECT 1 FROM dagster.runs u WHERE u.run_id = old.run_id)
      AND EXISTS (SELECT 1 FROM dagster.asset_check_executions later
                  WHERE later.asset_key = old.asset_key AND later.check_name = old.check_name
                    AND later.id > old.id)
    ORDER BY old.id
    LIMIT %(limit)s);

-- name: neighbours_of_partitions
-- The positions of these keys in Dagster's list, each with the key before it. Only for the keys
-- that matter, since the whole list grows with the memory.
SELECT p.partition AS partition_key, p.id, r.artifact_uid, r.source_system, r.title,
       (SELECT max(q.id) FROM dagster.dynamic_partitions q
        WHERE q.partitions_def_name = 'revisions' AND q.id < p.id) AS before
FROM dagster.dynamic_partitions p
JOIN artifact_revision r ON r.partition_key = p.partition
WHERE p.partitions_def_name = 'revisions' AND p.partition = ANY(%(keys)s)
ORDER BY p.id;

-- name: listen_for_runs
LISTEN dagster_runs;

-- name: state_of_partitions
SELECT k.partition_key, r.artifact_uid, r.source_system, r.title, j.status, j.locked_by
FROM unnest(%(keys)s::text[]) AS k (partition_key)
LEFT JOIN artifact_revision r ON r.partition_key = k.partition_key
LEFT JOIN event_jobs j ON j.artifact_uid = r.artifact_uid AND j.revision_id = r.revision_id
                      AND j.job_type = 'extract_events';

-- name: next_look_at_jobs
-- Seconds until a job is due: 0 while one is being worked on, since its run may die; NULL if none
-- is open.
SELECT extract(epoch FROM min(at) - now())::float8 AS seconds
FROM ((SELECT next_run_at AS at FROM event_jobs
       WHERE status = 'PENDING' ORDER BY next_run_at LIMIT 1)
      UNION ALL
      (SELECT now() FROM event_jobs WHERE status = 'PROCESSING' LIMIT 1)) AS open;

-- name: listen_for_jobs
LISTEN event_jobs;

-- name: trials_after
-- Trials that ended after the last one shown, except those that Dagster ran itself.
SELECT trial_id FROM prompt_trial
WHERE finished_at IS NOT NULL AND requested_by <> 'ui'
  AND (%(finished_at)s::timestamptz IS NULL
       OR (finished_at, trial_id) > (%(finished_at)s::timestamptz, %(trial_id)s::uuid))
ORDER BY finished_at, trial_id LIMIT 20;

-- name: try_housekeeping_lock
SELECT pg_try_advisory_lock(hashtext('mcp-memory housekeeping')) AS ours;

-- name: release_housekeeping_lock
SELECT pg_advisory_unlock(hashtext('mcp-memory housekeeping'));
