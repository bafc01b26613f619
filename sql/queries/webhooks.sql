-- Subscriptions and the messages to them.

-- fragment: subscription_columns
subscription_id AS id, url, types, category, actor, include_content, status, disabled_reason, failures,
last_success_at, created_at, secret,
CASE WHEN previous_until > now() THEN previous_secret END AS previous_secret

-- name: add_subscription
INSERT INTO log.webhook_subscriptions (url, types, category, actor, include_content, secret)
VALUES (%(url)s, %(types)s, %(category)s, %(actor)s, %(include_content)s, %(secret)s)
RETURNING
-- include: subscription_columns
;

-- name: list_subscriptions
SELECT
-- include: subscription_columns
       , w.waiting, w.last_error
FROM log.webhook_subscriptions s
CROSS JOIN LATERAL (
    SELECT count(*) AS waiting,
           (array_agg(o.last_error ORDER BY o.retry_count DESC, o.created_at)
            FILTER (WHERE o.last_error IS NOT NULL))[1] AS last_error
    FROM log.event_outbox o WHERE o.subscription_id = s.subscription_id
) w
ORDER BY created_at, subscription_id;

-- name: find_subscriptions
SELECT
-- include: subscription_columns
FROM log.webhook_subscriptions
WHERE subscription_id::text LIKE %(start)s || '%%'
LIMIT 2;

-- name: remove_subscription
DELETE FROM log.webhook_subscriptions WHERE subscription_id = %(id)s;

-- name: rotate_secret
UPDATE log.webhook_subscriptions
SET previous_secret = secret, previous_until = now() + make_interval(secs => %(overlap)s),
    secret = %(secret)s
WHERE subscription_id = %(id)s
RETURNING
-- include: subscription_columns
;

-- name: list_deliveries
-- Waiting messages first, then ended ones, newest first.
(SELECT subscription_id, id AS message_id, event_type, 'waiting' AS outcome,
        retry_count AS attempts, last_error AS error, created_at,
        NULL::timestamptz AS ended_at, next_attempt_at
 FROM log.event_outbox
 WHERE %(id)s::uuid IS NULL OR subscription_id = %(id)s::uuid
 ORDER BY created_at DESC LIMIT %(limit)s)
UNION ALL
(SELECT subscription_id, message_id, event_type, outcome, attempts, error, created_at, ended_at, NULL
 FROM log.webhook_deliveries
 WHERE %(id)s::uuid IS NULL OR subscription_id = %(id)s::uuid
 ORDER BY id DESC LIMIT %(limit)s)
LIMIT %(limit)s;

-- name: claim_messages
-- Due messages, a few per subscription, so that one slow receiver delays no other. A failing
-- receiver gets one message at a time. A message that another leader held is free, because that
-- leader leads no longer.
WITH due AS (
    SELECT o.id FROM log.webhook_subscriptions s
    CROSS JOIN LATERAL (
        SELECT id, next_attempt_at FROM log.event_outbox
        WHERE subscription_id = s.subscription_id AND next_attempt_at <= now()
          AND (leased_until IS NULL OR leased_until <= now()
               OR leased_by IS DISTINCT FROM %(leader)s)
        ORDER BY next_attempt_at, created_at
        LIMIT greatest(
            CASE WHEN s.failures > 0 THEN 1 ELSE %(for_each)s END
            - (SELECT count(*) FROM log.event_outbox held
               WHERE held.subscription_id = s.subscription_id AND held.leased_by = %(leader)s
                 AND held.leased_until > now()), 0)
        FOR UPDATE SKIP LOCKED
    ) o
    WHERE s.status = 'active' AND (s.not_before IS NULL OR s.not_before <= now())
    ORDER BY o.next_attempt_at
    LIMIT %(limit)s
),
claimed AS (
    UPDATE log.event_outbox o
    SET leased_by = %(leader)s, leased_until = now() + make_interval(secs => %(seconds)s),
        retry_count = retry_count + 1, first_attempt_at = coalesce(first_attempt_at, now())
    FROM due WHERE o.id = due.id
    RETURNING o.*
)
SELECT o.id, o.event_id, o.event_type, o.aggregate_type, o.aggregate_id,
       (o.event_data ->> 'version')::int AS version, o.event_data ->> 'timestamp' AS timestamp,
       o.event_data -> 'payload' AS payload, o.item_id, o.retry_count AS attempts,
       extract(epoch FROM now() - o.first_attempt_at)::float8 AS tried_for, o.created_at AS made_at,
       s.subscription_id, s.url, s.include_content, s.failures, s.secret,
       CASE WHEN s.previous_until > now() THEN s.previous_secret END AS previous_secret
FROM claimed o JOIN log.webhook_subscriptions s USING (subscription_id);

-- name: next_message
-- Seconds until a message may be due.
SELECT extract(epoch FROM min(greatest(o.next_attempt_at, coalesce(s.not_before, '-infinity'),
                                       coalesce(o.leased_until, '-infinity'))) - now())::float8
       AS seconds
FROM log.event_outbox o JOIN log.webhook_subscriptions s USING (subscription_id)
WHERE s.status = 'active';

-- name: messages_at_work
-- Whether a message is due or being sent.
SELECT EXISTS (SELECT 1 FROM log.event_outbox o JOIN log.webhook_subscriptions s USING (subscription_id)
               WHERE s.status = 'active' AND coalesce(s.not_before, '-infinity') <= now()
                 AND o.next_attempt_at <= now()) AS at_work;

-- name: end_message
-- Writes nothing for a message that another leader has taken meanwhile.
WITH ended AS (
    DELETE FROM log.event_outbox WHERE id = %(id)s AND leased_by = %(leader)s RETURNING *
),
reached AS (
    UPDATE log.webhook_subscriptions s
    SET failures = 0, not_before = NULL, last_success_at = now()
    FROM ended
    WHERE s.subscription_id = ended.subscription_id AND %(outcome)s = 'delivered'
      AND (s.failures > 0 OR s.last_success_at IS NULL
           OR s.last_success_at < now() - interval '5 seconds')
),
kept AS (
    INSERT INTO log.webhook_deliveries (
        subscription_id, message_id, event_type, outcome, attempts, error, created_at
    )
    SELECT subscription_id, id, event_type, %(outcome)s, retry_count, %(error)s, created_at FROM ended
    RETURNING subscription_id
)
DELETE FROM log.webhook_deliveries d USING kept
WHERE d.subscription_id = kept.subscription_id
  AND d.id <= (SELECT id FROM log.webhook_deliveries l
               WHERE l.subscription_id = kept.subscription_id
               ORDER BY id DESC OFFSET %(keep)s LIMIT 1);

-- name: put_message_off
WITH put_off AS (
    UPDATE log.event_outbox
    SET next_attempt_at = now() + make_interval(secs => %(seconds)s), last_error = %(error)s,
        leased_by = NULL, leased_until = NULL,
        retry_count = retry_count - CASE WHEN %(counts)s THEN 0 ELSE 1 END
    WHERE id = %(id)s AND leased_by = %(leader)s
    RETURNING subscription_id
)
UPDATE log.webhook_subscriptions s
SET failures = s.failures + 1,
    not_before = greatest(s.not_before, now() + make_interval(secs => %(pause)s))
FROM put_off WHERE s.subscription_id = put_off.subscription_id;

-- name: disable_subscription
-- With all its waiting messages.
WITH disabled AS (
    UPDATE log.webhook_subscriptions SET status = 'disabled', disabled_reason = %(reason)s
    WHERE subscription_id = %(id)s AND status = 'active'
    RETURNING subscription_id
),
ended AS (
    DELETE FROM log.event_outbox o USING disabled
    WHERE o.subscription_id = disabled.subscription_id
    RETURNING o.*
),
last_ones AS (
    SELECT * FROM ended ORDER BY created_at DESC LIMIT %(keep)s
)
INSERT INTO log.webhook_deliveries (
    subscription_id, message_id, event_type, outcome, attempts, error, created_at
)
SELECT subscription_id, id, event_type, 'failed', retry_count, %(reason)s, created_at FROM last_ones
ORDER BY created_at;

-- name: receiver_is_lost
-- It has accepted no message since this one was made.
SELECT last_success_at IS NULL OR last_success_at < %(since)s AS is_lost
FROM log.webhook_subscriptions WHERE subscription_id = %(id)s;

-- name: prune_deliveries
DELETE FROM log.webhook_deliveries WHERE ended_at < now() - make_interval(days => %(days)s);

-- name: is_deleted_since
-- Whether the subject of a change was deleted after it, or is no longer visible to the subscriber.
SELECT EXISTS (SELECT 1 FROM log.events
               WHERE aggregate_id = %(aggregate_id)s AND aggregate_type = %(aggregate_type)s
                 AND version > %(version)s AND event_type = ANY (%(deletions)s::text[]))
       OR EXISTS (SELECT 1 FROM artifact_revision r
                  JOIN log.webhook_subscriptions s ON s.subscription_id = %(subscription_id)s
                  WHERE r.artifact_uid = %(artifact_uid)s AND r.is_latest
                    AND NOT EXISTS (SELECT 1 FROM audience_member m
                                    WHERE m.audience_id = r.audience_id
                                      AND m.member = ANY (s.marks))) AS gone;

-- name: webhook_event
SELECT e.category, e.event_time, e.due_time, e.narrative, e.subject_json, e.actors_json,
       e.confidence, r.title,
       (SELECT jsonb_agg(jsonb_build_object('quote', v.quote, 'start_char', v.start_char,
                                            'end_char', v.end_char) ORDER BY v.start_char)
        FROM event_evidence v WHERE v.event_id = e.event_id) AS evidence
FROM semantic_event e
LEFT JOIN artifact_revision r USING (artifact_uid, revision_id)
WHERE e.event_id = %(id)s;

-- name: webhook_document
SELECT title, artifact_type FROM artifact_revision
WHERE artifact_uid = %(artifact_uid)s AND revision_id = %(revision_id)s;

-- name: webhook_memory
SELECT type, content FROM memory WHERE memory_id = %(memory_id)s;
