"""The tables that the contract names: columns, keys, checks, indexes."""

NOW = "now()"
UUID = "gen_random_uuid()"


# table → column → (type, may be null, default)
COLUMNS: dict[str, dict[str, tuple[str, bool, str | None]]] = {
    "artifact_revision": {
        "artifact_uid": ("text", False, None),
        "revision_id": ("text", False, None),
        "artifact_id": ("text", False, None),
        "artifact_type": ("text", False, None),
        "source_system": ("text", False, None),
        "source_id": ("text", False, None),
        "source_ts": ("timestamp with time zone", True, None),
        "content_hash": ("text", False, None),
        "token_count": ("integer", False, None),
        "is_chunked": ("boolean", False, None),
        "chunk_count": ("integer", False, None),
        "sensitivity": ("text", False, "'normal'::text"),
        "visibility_scope": ("text", False, "'me'::text"),
        "retention_policy": ("text", False, "'forever'::text"),
        "is_latest": ("boolean", False, "true"),
        "ingested_at": ("timestamp with time zone", False, NOW),
    },
    "event_jobs": {
        "job_id": ("uuid", False, UUID),
        "job_type": ("text", False, "'extract_events'::text"),
        "artifact_uid": ("text", False, None),
        "revision_id": ("text", False, None),
        "status": ("text", False, "'PENDING'::text"),
        "attempts": ("integer", False, "0"),
        "max_attempts": ("integer", False, "5"),
        "next_run_at": ("timestamp with time zone", False, NOW),
        "locked_at": ("timestamp with time zone", True, None),
        "locked_by": ("text", True, None),
        "last_error_code": ("text", True, None),
        "last_error_message": ("text", True, None),
        "generation": ("integer", False, "1"),
        "origin": ("text", False, "'ingest'::text"),
        "requested_by": ("text", True, None),
        "priority": ("integer", False, "0"),
        "backoff_policy": ("text", False, "'exp'::text"),
        "idempotency_key": ("text", True, None),
        "trace_id": ("text", True, None),
        "started_at": ("timestamp with time zone", True, None),
        "finished_at": ("timestamp with time zone", True, None),
        "tenant_id": ("uuid", False, "current_tenant()"),
        "created_at": ("timestamp with time zone", False, NOW),
        "updated_at": ("timestamp with time zone", False, NOW),
    },
    "semantic_event": {
        "event_id": ("uuid", False, UUID),
        "artifact_uid": ("text", False, None),
        "revision_id": ("text", False, None),
        "category": ("text", False, None),
        "event_time": ("timestamp with time zone", True, None),
        "narrative": ("text", False, None),
        "subject_json": ("jsonb", False, None),
        "actors_json": ("jsonb", False, None),
        "confidence": ("double precision", False, None),
        "extraction_run_id": ("uuid", False, None),
        "created_at": ("timestamp with time zone", False, NOW),
        "due_time": ("timestamp with time zone", True, None),
        "due_quote": ("text", True, None),
        "due_start_char": ("integer", True, None),
        "due_end_char": ("integer", True, None),
    },
    "event_evidence": {
        "evidence_id": ("uuid", False, UUID),
        "event_id": ("uuid", False, None),
        "artifact_uid": ("text", False, None),
        "revision_id": ("text", False, None),
        "chunk_id": ("text", True, None),
        "start_char": ("integer", False, None),
        "end_char": ("integer", False, None),
        "quote": ("text", False, None),
        "created_at": ("timestamp with time zone", False, NOW),
    },
    "revision_text": {
        "artifact_uid": ("text", False, None),
        "revision_id": ("text", False, None),
        "content": ("text", False, None),
    },
    "revision_chunk": {
        "artifact_uid": ("text", False, None),
        "revision_id": ("text", False, None),
        "chunk_index": ("integer", False, None),
        "chunk_id": ("text", False, None),
        "start_char": ("integer", False, None),
        "end_char": ("integer", False, None),
        "token_count": ("integer", False, None),
        "content_hash": ("text", False, None),
    },
    "extraction_cache": {
        "chunk_hash": ("text", False, None),
        "context_hash": ("text", False, None),
        "prompt_version": ("text", False, None),
        "model": ("text", False, None),
        "answer": ("jsonb", False, None),
        "created_at": ("timestamp with time zone", False, NOW),
    },
}
# Columns beyond the contract. A new one must be optional or have a default, else what the
# contract allows to be written would be refused.
DERIVED = {("revision_chunk", "words")}  # always written together with the text


PRIMARY_KEYS = {
    "artifact_revision": ["artifact_uid", "revision_id"],
    "event_jobs": ["job_id"],
    "semantic_event": ["event_id"],
    "event_evidence": ["evidence_id"],
    "revision_text": ["artifact_uid", "revision_id"],
    "revision_chunk": ["artifact_uid", "revision_id", "chunk_index"],
    "extraction_cache": ["tenant_id", "chunk_hash", "context_hash", "prompt_version", "model"],
}
UNIQUES = {"event_jobs": ["artifact_uid", "revision_id", "job_type"]}
FOREIGN_KEYS = {
    ("event_evidence", "FOREIGN KEY (event_id) REFERENCES semantic_event(event_id)"),
    (
        "revision_text",
        "FOREIGN KEY (artifact_uid, revision_id) "
        "REFERENCES artifact_revision(artifact_uid, revision_id)",
    ),
    (
        "revision_chunk",
        "FOREIGN KEY (artifact_uid, revision_id) "
        "REFERENCES artifact_revision(artifact_uid, revision_id)",
    ),
}


# (table, column) → the only values it may have
CHOICES = {
    ("artifact_revision", "artifact_type"): ["email", "doc", "chat", "transcript", "note"],
    ("artifact_revision", "sensitivity"): ["normal", "sensitive", "highly_sensitive"],
    ("artifact_revision", "visibility_scope"): ["me", "team", "org", "custom"],
    ("artifact_revision", "retention_policy"): ["forever", "1y", "until_resolved", "custom"],
    ("event_jobs", "status"): ["PENDING", "PROCESSING", "DONE", "FAILED", "CANCELED"],
    ("event_jobs", "backoff_policy"): ["none", "fixed", "exp"],
    ("semantic_event", "category"): [
        *("Commitment", "Execution", "Decision", "Collaboration"),
        *("QualityRisk", "Feedback", "Change", "Stakeholder"),
    ],
}
OTHER_CHECKS = {
    ("semantic_event", "confidence >= 0.0 AND confidence <= 1.0"),
    ("event_evidence", "end_char > start_char"),
    ("revision_chunk", "end_char > start_char"),
}


# index → (table, unique, method, keys, predicate)
INDEXES: dict[str, tuple[str, bool, str, str, str | None]] = {
    "idx_artifact_revision_uid_latest": (
        *("artifact_revision", False, "btree", "artifact_uid, is_latest", None),
    ),
    "idx_artifact_revision_ingested": (
        *("artifact_revision", False, "btree", "ingested_at DESC", None),
    ),
    "idx_artifact_revision_source": (
        *("artifact_revision", False, "btree", "source_system, source_id", None),
    ),
    "idx_artifact_revision_artifact_id": (
        *("artifact_revision", False, "btree", "artifact_id", None),
    ),
    "uq_artifact_revision_one_latest": (
        *("artifact_revision", True, "btree", "artifact_uid", "is_latest"),
    ),
    "idx_event_jobs_claimable": (
        *("event_jobs", False, "btree", "status, next_run_at", "status = 'PENDING'::text"),
    ),
    "idx_event_jobs_revision": ("event_jobs", False, "btree", "artifact_uid, revision_id", None),
    "idx_event_jobs_status": ("event_jobs", False, "btree", "status", None),
    "idx_job__job_org_id": ("event_jobs", False, "btree", "tenant_id", None),
    "idx_job__org_id_created_at_desc": (
        *("event_jobs", False, "btree", "tenant_id, created_at DESC, job_id DESC", None),
    ),
    "idx_job__org_id_idempotency_key": (
        *("event_jobs", True, "btree", "tenant_id, idempotency_key", "idempotency_key IS NOT NULL"),
    ),
    "idx_job__status_created_at": (
        *("event_jobs", False, "btree", "status, created_at, job_id", None),
    ),
    "pk_job_event": ("job_event", True, "btree", "id", None),
    "idx_job_event__job_id_ts": ("job_event", False, "btree", "job_id, ts", None),
    "idx_job_event__ts": ("job_event", False, "btree", "ts", None),
    "idx_semantic_event_revision": (
        *("semantic_event", False, "btree", "artifact_uid, revision_id", None),
    ),
    "idx_semantic_event_category_time": (
        *("semantic_event", False, "btree", "category, event_time DESC NULLS LAST", None),
    ),
    "idx_semantic_event_extraction": (
        *("semantic_event", False, "btree", "extraction_run_id", None),
    ),
    "idx_semantic_event_narrative_fts": (
        *("semantic_event", False, "gin", "to_tsvector('english'::regconfig, narrative)", None),
    ),
    "idx_semantic_event_subject_type": (
        *("semantic_event", False, "btree", "((subject_json ->> 'type'::text))", None),
    ),
    "idx_semantic_event_actors": ("semantic_event", False, "gin", "actors_json", None),
    "idx_event_evidence_event": ("event_evidence", False, "btree", "event_id", None),
    "idx_event_evidence_revision": (
        *("event_evidence", False, "btree", "artifact_uid, revision_id", None),
    ),
    "idx_event_evidence_chunk": (
        *("event_evidence", False, "btree", "chunk_id", "chunk_id IS NOT NULL"),
    ),
}
