"""Revisions and their chunks as columns, for statements that insert many rows at once."""

import json
from collections.abc import Iterable
from typing import Any

from memory_core.artifacts import labels
from memory_core.artifacts.document import Document
from memory_core.artifacts.revision import RevisionDraft, count_tokens

# Texts longer than this have their chunks stored separately: Postgres would have to read a long
# text from its beginning to cut one chunk out of it.
_LONG_CHARS = 50_000


def key_columns(keys: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Revisions by their artifacts and their own ids."""
    named = list(keys)
    return {
        "uids": [uid for uid, _ in named],
        "revisions": [revision for _, revision in named],
    }


def revision_columns(drafts: list[RevisionDraft]) -> dict[str, list[Any]]:
    revisions = [draft.revision for draft in drafts]
    return {
        **key_columns(draft.key for draft in drafts),
        "artifact_ids": [revision.artifact_id for revision in revisions],
        "source_systems": [revision.document.source_system for revision in revisions],
        "source_ids": [revision.document.source_id or "" for revision in revisions],
        "content_hashes": [revision.content_hash for revision in revisions],
        "partition_keys": [revision.partition_key for revision in revisions],
        **size_columns(drafts),
        **label_columns([revision.document for revision in revisions]),
    }


def size_columns(drafts: list[RevisionDraft]) -> dict[str, list[int]]:
    return {
        "token_counts": [count_tokens(draft.pieces) for draft in drafts],
        "chunk_counts": [len(draft.pieces) if draft.is_chunked else 0 for draft in drafts],
    }


def label_columns(documents: list[Document]) -> dict[str, list[Any]]:
    stored = [labels.labels_of(document) for document in documents]
    return {
        "artifact_types": [row.artifact_type for row in stored],
        "source_tss": [row.source_ts for row in stored],
        "source_urls": [row.source_url for row in stored],
        "titles": [row.title for row in stored],
        "authors": [row.author for row in stored],
        "participants": [json.dumps(row.participants) for row in stored],
        "sensitivities": [row.sensitivity for row in stored],
        "visibility_scopes": [row.visibility_scope for row in stored],
        "retention_policies": [row.retention_policy for row in stored],
        "visible_to": [json.dumps(row.visible_to) for row in stored],
        "expires_at": [row.expires_at for row in stored],
    }


def text_columns(drafts: list[RevisionDraft]) -> dict[str, list[str]]:
    revisions = [draft.revision for draft in drafts]
    return {
        **key_columns(draft.key for draft in drafts),
        "contents": [revision.text for revision in revisions],
        "nul_positions": [json.dumps(revision.nul_positions) for revision in revisions],
    }


def chunk_columns(drafts: list[RevisionDraft]) -> dict[str, list[Any]]:
    placed = [(draft.revision, piece) for draft in drafts for piece in draft.pieces]
    return {
        "uids": [revision.uid for revision, _ in placed],
        "revisions": [revision.id for revision, _ in placed],
        # The first chunk also has the words of the title, so that a search for the title returns
        # the opening.
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
        "long": [len(revision.text) > _LONG_CHARS for revision, _ in placed],
    }
