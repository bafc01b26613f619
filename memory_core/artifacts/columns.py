"""Revisions and their chunks as columns, for statements that insert many rows at once."""

import json
from typing import Any

from memory_core.artifacts.revision import Draft, count_tokens


def revision_columns(drafts: list[Draft]) -> dict[str, list[Any]]:
    revisions = [draft.revision for draft in drafts]
    documents = [revision.document for revision in revisions]
    return {
        "uids": [revision.uid for revision in revisions],
        "revisions": [revision.id for revision in revisions],
        "artifact_ids": [revision.artifact_id for revision in revisions],
        "artifact_types": [document.artifact_type.value for document in documents],
        "source_systems": [document.source_system for document in documents],
        "source_ids": [document.source_id or "" for document in documents],
        "source_tss": [document.ts for document in documents],
        "source_urls": [document.source_url for document in documents],
        "titles": [document.title for document in documents],
        "authors": [document.author for document in documents],
        "participants": [json.dumps(document.participants) for document in documents],
        "content_hashes": [revision.content_hash for revision in revisions],
        "token_counts": [count_tokens(draft.pieces) for draft in drafts],
        "chunk_counts": [len(draft.pieces) if draft.is_chunked else 0 for draft in drafts],
        "sensitivities": [document.sensitivity.value for document in documents],
        "visibility_scopes": [document.visibility_scope.value for document in documents],
        "retention_policies": [document.retention_policy.value for document in documents],
        "partition_keys": [revision.partition_key for revision in revisions],
    }


def chunk_columns(drafts: list[Draft]) -> dict[str, list[Any]]:
    placed = [(draft.revision, piece) for draft in drafts for piece in draft.pieces]
    return {
        "uids": [revision.uid for revision, _ in placed],
        "revisions": [revision.id for revision, _ in placed],
        # Whoever looks for the title finds the opening.
        "titles": [
            (revision.document.title or "") if piece.chunk.index == 0 else None
            for revision, piece in placed
        ],
        "indexes": [piece.chunk.index for _, piece in placed],
        "ids": [piece.id for _, piece in placed],
        "starts": [piece.chunk.start_char for _, piece in placed],
        "ends": [piece.chunk.end_char for _, piece in placed],
        "tokens": [piece.chunk.token_count for _, piece in placed],
        "hashes": [piece.content_hash for _, piece in placed],
        "texts": [piece.chunk.text for _, piece in placed],
    }
