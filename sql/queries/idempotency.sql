-- name: lock_idempotency_key
-- Requests with the same key take turns.
SELECT pg_advisory_xact_lock(hashtextextended(current_tenant()::text || %(key)s, 18));

-- name: first_answer
SELECT request_hash, answer FROM idempotent_request
WHERE tenant_id = current_tenant() AND idempotency_key = %(key)s;

-- name: keep_first_answer
INSERT INTO idempotent_request (idempotency_key, request_hash, artifact_uid, answer)
VALUES (%(key)s, %(request_hash)s, %(artifact_uid)s, %(answer)s);
