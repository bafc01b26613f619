-- The log of changes, its readers, partitions and snapshots.

-- name: append_changes
-- All changes of a transaction in one round trip.
SELECT transaction_id::text::bigint AS transaction_id, sequence_number
FROM log.append(%(changes)s::text::jsonb, %(tenant_id)s::uuid, %(actor_id)s::text,
                %(trace_id)s::text, %(span_id)s::text, %(metadata)s::text::jsonb);

-- fragment: change_columns
transaction_id::text::bigint AS transaction_id, sequence_number, event_id, aggregate_type,
aggregate_id, event_type, version, timestamp, payload, tenant_id, actor_id, trace_id, span_id,
metadata, created_at, audience_id

-- name: read_changes
-- Only below the horizon, so that no change can appear before those that are read.
SELECT
-- include: change_columns
FROM log.events
WHERE (transaction_id, sequence_number) > (%(transaction_id)s::text::xid8, %(sequence_number)s)
  AND transaction_id < pg_snapshot_xmin(pg_current_snapshot())
  AND (%(types)s::text[] IS NULL OR event_type = ANY (%(types)s::text[]))
ORDER BY log.events.transaction_id, sequence_number
LIMIT %(limit)s;

-- name: log_horizon
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS transaction_id,
       0::bigint AS sequence_number;

-- name: last_change
SELECT transaction_id::text::bigint AS transaction_id, sequence_number FROM log.events
ORDER BY log.events.transaction_id DESC, sequence_number DESC LIMIT 1;

-- name: horizon_holder
-- The oldest transaction that has written, other than this one.
SELECT pid, extract(epoch FROM clock_timestamp() - xact_start)::float8 AS age_seconds,
       application_name AS application
FROM pg_stat_activity
WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()
ORDER BY age(backend_xid) DESC
LIMIT 1;

-- name: aggregate_changes
SELECT
-- include: change_columns
FROM log.events
WHERE aggregate_id = %(aggregate_id)s AND aggregate_type = %(aggregate_type)s
  AND version > %(after_version)s
  AND (%(until)s::timestamptz IS NULL OR timestamp <= %(until)s)
ORDER BY version;

-- fragment: checkpoint_columns
projection_name AS name, transaction_id::text::bigint AS transaction_id, sequence_number, status,
events_processed AS processed, leader, last_processed_at, batch_size, attempts, fault, fault_code

-- name: get_checkpoint
SELECT
-- include: checkpoint_columns
FROM log.projection_checkpoints WHERE projection_name = %(name)s;

-- name: list_checkpoints
SELECT
-- include: checkpoint_columns
FROM log.projection_checkpoints ORDER BY projection_name;

-- name: try_leadership
-- The connection holds it: the lock ends with its process, however that ends.
SELECT pg_try_advisory_lock(hashtext('mcp-memory projection'), hashtext(%(name)s)) AS mine;

-- name: end_leadership
SELECT pg_advisory_unlock(hashtext('mcp-memory projection'), hashtext(%(name)s));

-- name: lead_projection
-- A new projection starts at the end of the log, and is rebuilt from Postgres.
INSERT INTO log.projection_checkpoints AS c (
    projection_name, transaction_id, sequence_number, leader, heartbeat_at
)
VALUES (%(name)s, pg_snapshot_xmin(pg_current_snapshot()), 0, %(leader)s, now())
ON CONFLICT (projection_name) DO UPDATE SET leader = excluded.leader, heartbeat_at = now()
RETURNING
-- include: checkpoint_columns
;

-- name: begin_batch
-- The attempt is counted before the work. The commit does not wait for the disk: only a crash of
-- Postgres itself could lose the count, which does no harm.
WITH fast AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
UPDATE log.projection_checkpoints
SET batch_size = %(size)s,
    attempts = attempts + CASE WHEN %(size)s = 1 THEN 1 ELSE 0 END
FROM fast
WHERE projection_name = %(name)s AND leader = %(leader)s
RETURNING
-- include: checkpoint_columns
;

-- name: advance_projection
UPDATE log.projection_checkpoints
SET transaction_id = %(transaction_id)s::text::xid8, sequence_number = %(sequence_number)s,
    last_event_id = %(event_id)s, last_event_type = %(event_type)s, last_processed_at = now(),
    events_processed = events_processed + %(changes)s, heartbeat_at = now(),
    batch_size = NULL, attempts = 0,
    fault = CASE WHEN status = 'rebuilding' THEN fault END,
    fault_code = CASE WHEN status = 'rebuilding' THEN fault_code END,
    fault_since = CASE WHEN status = 'rebuilding' THEN fault_since END
WHERE projection_name = %(name)s AND leader = %(leader)s
  AND (transaction_id, sequence_number) < (%(transaction_id)s::text::xid8, %(sequence_number)s);

-- name: projection_waits
-- A dependency is away, so the batch does not count as an attempt.
UPDATE log.projection_checkpoints
SET attempts = greatest(attempts - CASE WHEN batch_size = 1 THEN 1 ELSE 0 END, 0),
    batch_size = NULL, fault = %(fault)s, fault_code = %(code)s,
    fault_since = coalesce(fault_since, now()), heartbeat_at = now()
WHERE projection_name = %(name)s AND leader = %(leader)s;

-- name: note_projection_fault
UPDATE log.projection_checkpoints
SET fault = %(fault)s, fault_code = %(code)s, fault_since = coalesce(fault_since, now())
WHERE projection_name = %(name)s AND leader = %(leader)s;

-- name: beat_projection
WITH fast AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
UPDATE log.projection_checkpoints SET heartbeat_at = now() FROM fast
WHERE projection_name = %(name)s AND leader = %(leader)s
RETURNING
-- include: checkpoint_columns
;

-- name: set_projection_status
-- A projection whose rebuild did not finish continues with it.
WITH woken AS MATERIALIZED (SELECT pg_notify('memory_log', ''))
UPDATE log.projection_checkpoints
SET status = CASE WHEN %(status)s = 'running' AND rebuilt_at IS NULL THEN 'rebuilding'
                  ELSE %(status)s END,
    rebuilt_at = CASE WHEN %(status)s <> 'rebuilding' THEN rebuilt_at END
FROM woken
WHERE projection_name = %(name)s
RETURNING
-- include: checkpoint_columns
;

-- name: projection_is_rebuilt
UPDATE log.projection_checkpoints
SET status = 'running', rebuilt_at = now(), fault = NULL, fault_code = NULL, fault_since = NULL
WHERE projection_name = %(name)s AND leader = %(leader)s AND status = 'rebuilding';

-- name: change_waits
-- Whether there is a change after a position, and whether one of them is below the horizon.
SELECT EXISTS (SELECT 1 FROM log.events
               WHERE (transaction_id, sequence_number)
                   > (%(transaction_id)s::text::xid8, %(sequence_number)s)) AS waits,
       EXISTS (SELECT 1 FROM log.events
               WHERE (transaction_id, sequence_number)
                   > (%(transaction_id)s::text::xid8, %(sequence_number)s)
                 AND transaction_id < pg_snapshot_xmin(pg_current_snapshot())) AS readable;

-- name: put_dead_letter
INSERT INTO log.dead_letter_queue AS d (
    event_id, projection_name, event_type, event_data, error_message, error_stacktrace, retry_count
)
VALUES (%(event_id)s, %(projection)s, %(event_type)s, %(event_data)s, %(message)s, %(stacktrace)s,
        %(attempts)s)
ON CONFLICT (event_id, projection_name) DO UPDATE
SET error_message = excluded.error_message, error_stacktrace = excluded.error_stacktrace,
    retry_count = d.retry_count + excluded.retry_count, last_failed_at = now(),
    status = 'failed', resolved_at = NULL, resolved_by = NULL;

-- fragment: dead_letter_columns
id, projection_name AS projection, event_data, error_message, error_stacktrace, retry_count,
first_failed_at, last_failed_at, status, resolved_at, resolved_by

-- name: take_dead_letter
UPDATE log.dead_letter_queue
SET status = 'failed', retry_count = retry_count + 1, last_failed_at = now()
WHERE id = (SELECT id FROM log.dead_letter_queue
            WHERE projection_name = %(projection)s AND status = 'retrying'
            ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING
-- include: dead_letter_columns
;

-- name: close_dead_letter
UPDATE log.dead_letter_queue SET status = 'resolved', resolved_at = now() WHERE id = %(id)s;

-- name: fail_dead_letter
UPDATE log.dead_letter_queue
SET error_message = %(message)s, error_stacktrace = %(stacktrace)s, last_failed_at = now(),
    resolved_by = NULL
WHERE id = %(id)s;

-- name: give_back_dead_letter
UPDATE log.dead_letter_queue SET status = 'retrying', retry_count = retry_count - 1
WHERE id = %(id)s;

-- name: list_dead_letters
SELECT
-- include: dead_letter_columns
       , count(*) OVER () AS total
FROM log.dead_letter_queue
WHERE (%(projection)s::text IS NULL OR projection_name = %(projection)s)
  AND CASE WHEN %(status)s::text IS NULL THEN status <> 'resolved' ELSE status = %(status)s END
ORDER BY id LIMIT %(limit)s;

-- name: get_dead_letter
SELECT
-- include: dead_letter_columns
FROM log.dead_letter_queue WHERE id = %(id)s;

-- name: retry_dead_letters
WITH woken AS MATERIALIZED (SELECT pg_notify('memory_log', ''))
UPDATE log.dead_letter_queue SET status = 'retrying', resolved_by = %(by)s
FROM woken
WHERE status = 'failed' AND (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s::bigint[]))
  AND (%(projection)s::text IS NULL OR projection_name = %(projection)s);

-- name: resolve_dead_letters
UPDATE log.dead_letter_queue SET status = 'resolved', resolved_at = now(), resolved_by = %(by)s
WHERE status <> 'resolved' AND (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s::bigint[]))
  AND (%(projection)s::text IS NULL OR projection_name = %(projection)s);

-- name: listen_to_log
LISTEN memory_log;

-- name: name_follower
SELECT set_config('application_name',
                  'mcp-memory ' || %(name)s::text || ' ' || %(position)s::text, false);

-- name: positions_are_foreign
-- True if a change has a transaction id beyond this cluster's, or the mark of another cluster.
SELECT NOT EXISTS (SELECT 1 FROM log.cluster c JOIN pg_control_system() s USING (system_identifier))
    OR coalesce((SELECT transaction_id FROM log.events ORDER BY log.events.transaction_id DESC LIMIT 1)
                >= pg_snapshot_xmax(pg_current_snapshot()), false) AS foreign_positions;

-- name: rebase_log
SELECT changes, checkpoints FROM log.rebase();

-- name: missing_partitions
SELECT count(*) FILTER (WHERE to_regclass(
           'log.events_' || to_char(month, '"y"YYYY"m"MM')) IS NULL) AS missing
FROM generate_series(date_trunc('month', %(first)s::date::timestamp),
                     date_trunc('month', %(first)s::date::timestamp)
                     + make_interval(months => %(months)s::int - 1), interval '1 month') AS m (month);

-- name: make_partitions
SELECT name FROM log.make_partitions(%(first)s::date, %(months)s::int) AS made (name);

-- name: old_partitions
-- Partitions that ended more than the given months ago, oldest first.
SELECT c.relname AS name, m.month AT TIME ZONE 'UTC' AS since,
       (m.month + interval '1 month') AT TIME ZONE 'UTC' AS until
FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid
CROSS JOIN LATERAL (SELECT to_timestamp(substring(c.relname FROM 'y(\d+m\d+)$'), 'YYYY"m"MM')
                           AT TIME ZONE current_setting('TimeZone') AS month) m
WHERE i.inhparent = 'log.events'::regclass AND c.relname <> 'events_default'
  AND m.month < date_trunc('month', %(first)s::date::timestamp)
                - make_interval(months => %(months)s::int)
ORDER BY m.month;

-- name: projection_behind_partition
SELECT c.projection_name FROM log.projection_checkpoints c
WHERE EXISTS (SELECT 1 FROM log.events e
              WHERE e.timestamp < %(before)s
                AND (e.transaction_id, e.sequence_number) > (c.transaction_id, c.sequence_number))
LIMIT 1;

-- name: aggregates_of_partition
SELECT DISTINCT aggregate_type, aggregate_id FROM log.events
WHERE timestamp >= %(since)s AND timestamp < %(until)s;

-- name: partition_changes
SELECT
-- include: change_columns
FROM log.events
WHERE timestamp >= %(since)s AND timestamp < %(until)s AND sequence_number > %(after)s
ORDER BY sequence_number LIMIT %(limit)s;

-- name: drop_partition
SELECT log.drop_partition(%(name)s);

-- name: nearest_snapshot
SELECT version, state_at, state_data FROM log.event_snapshots
WHERE aggregate_type = %(aggregate_type)s AND aggregate_id = %(aggregate_id)s
  AND (%(at)s::timestamptz IS NULL OR state_at <= %(at)s)
ORDER BY version DESC LIMIT 1;

-- name: keep_snapshot
INSERT INTO log.event_snapshots (
    aggregate_type, aggregate_id, state_data, version, event_sequence, state_at
)
SELECT %(aggregate_type)s::text, %(aggregate_id)s::uuid, %(state)s::jsonb, %(version)s::int,
       coalesce((SELECT sequence_number FROM log.events
                 WHERE aggregate_type = %(aggregate_type)s::text
                   AND aggregate_id = %(aggregate_id)s::uuid AND version = %(version)s::int), 0),
       %(state_at)s::timestamptz
ON CONFLICT (aggregate_type, aggregate_id, version) DO NOTHING;

-- name: aggregates_without_snapshot
SELECT a.aggregate_type, a.aggregate_id FROM log.aggregates a
WHERE a.version >= %(every)s
  AND a.version - coalesce((SELECT max(s.version) FROM log.event_snapshots s
                            WHERE s.aggregate_type = a.aggregate_type
                              AND s.aggregate_id = a.aggregate_id), 0) >= %(every)s
LIMIT %(limit)s;

-- name: projection_lags
-- Every checkpoint, with the changes after it. Counted up to ten thousand.
SELECT
-- include: checkpoint_columns
       , lag.changes, extract(epoch FROM clock_timestamp() - lag.oldest)::float8 AS seconds,
       lag.unreadable,
       (SELECT count(*) FROM log.dead_letter_queue d
        WHERE d.projection_name = c.projection_name AND d.status <> 'resolved') AS dead_letters,
       log.is_led(c.projection_name) AS is_led
FROM log.projection_checkpoints c
CROSS JOIN LATERAL log.changes_after(c.transaction_id, c.sequence_number) AS lag
ORDER BY projection_name;

-- name: webhook_lag
-- Messages that are due and unfinished, without those that wait for a failed receiver.
SELECT count(*) FILTER (WHERE due_at <= now()) AS changes,
       extract(epoch FROM now() - min(due_at) FILTER (WHERE due_at <= now()))::float8 AS seconds,
       count(*) FILTER (WHERE due_at > now()) AS put_off,
       log.is_led('webhooks') AS is_led
FROM (SELECT greatest(o.next_attempt_at, s.not_before) AS due_at
      FROM log.event_outbox o JOIN log.webhook_subscriptions s USING (subscription_id)
      WHERE s.status = 'active' LIMIT 10000) o;

-- name: follower_lags
-- Processes that follow the log without a checkpoint: the application names of their connections
-- contain their positions.
SELECT f.name, f.transaction_id::text::bigint AS transaction_id, f.sequence_number, lag.changes,
       extract(epoch FROM clock_timestamp() - lag.oldest)::float8 AS seconds, lag.unreadable
FROM (
    SELECT part[1] AS name, part[2]::xid8 AS transaction_id, part[3]::bigint AS sequence_number
    FROM pg_stat_activity,
         regexp_match(application_name, '^mcp-memory (\D+) (\d{1,19}):(\d{1,18})$') AS part
    WHERE datname = current_database() AND part IS NOT NULL
) f
CROSS JOIN LATERAL log.changes_after(f.transaction_id, f.sequence_number) AS lag
ORDER BY f.name, f.transaction_id, f.sequence_number;

-- name: before_last_changes
SELECT transaction_id::text::bigint AS transaction_id, sequence_number FROM log.events
WHERE transaction_id < pg_snapshot_xmin(pg_current_snapshot())
  AND (%(types)s::text[] IS NULL OR event_type = ANY (%(types)s::text[]))
ORDER BY log.events.transaction_id DESC, sequence_number DESC
LIMIT 1 OFFSET %(number)s;

-- name: visible_audiences
SELECT unnest(visible_audiences()) AS audience_id;
