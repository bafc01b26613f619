"""Events by the million: the same every time, and as uneven as real ones.

A few words, subjects and people are everywhere and most are rare (Zipf); most documents have a
handful of events and some have dozens; documents come in the order of time, one in five of their
revisions is superseded. Quotes stand in the texts at their offsets. A long text is cut into chunks
of the length that an ingest makes.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import md5, sha256
from itertools import accumulate
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from benchmarks import event_words
from benchmarks.event_words import COMMON, FIRST_NAMES, SYLLABLES
from memory_core.kernel import migrations

_TABLES = (
    "semantic_event",
    "event_entry",
    "event_evidence",
    "event_actor",
    "artifact_revision",
    "event_jobs",
    "revision_chunk",
    "chunk_entry",
    "revision_period",
)

_CATEGORIES = (
    *("Execution",) * 6,
    *("Decision",) * 4,
    *("Commitment",) * 3,
    *("Change",) * 3,
    *("Collaboration",) * 2,
    *("QualityRisk",) * 1,
    *("Feedback",) * 1,
    *("Stakeholder",) * 1,
)
WORDS = 30_000
PEOPLE = 5_000
SUBJECTS = 2_000
CASES = 50_000  # numbers that a few events each have: the rarest words
_SEED = 5
_PERSON_WORDS = 10_000  # last names are words from here on
_SLOT = 200  # characters per quote in a text
# A text of up to 1,200 tokens is one piece. A longer one is cut into chunks of 900 tokens, of which
# 100 are in the next one too. A token of these texts has about four characters.
_ONE_PIECE = 24 * _SLOT
_CHUNK = 18 * _SLOT
_STEP = 16 * _SLOT

_COPY_REVISIONS = """
COPY artifact_revision (
    artifact_uid, revision_id, artifact_id, artifact_type, source_system, source_id, source_ts,
    title, content_hash, token_count, is_chunked, chunk_count, is_latest, latest_since,
    partition_key, ingested_at) FROM STDIN
"""
_COPY_EVENTS = """
COPY semantic_event (
    event_id, artifact_uid, revision_id, category, event_time, due_time, narrative, subject_json,
    actors_json, confidence, extraction_run_id, created_at, quotes, document_title, is_latest)
FROM STDIN
"""

_DERIVED = f"""
INSERT INTO event_jobs (
    job_id, artifact_uid, revision_id, status, attempts, created_at, finished_at, tenant_id,
    audience_id)
SELECT md5('job' || revision_id)::uuid, artifact_uid, revision_id,
       CASE WHEN hashtext(revision_id) % 100 = 0 THEN 'FAILED' ELSE 'DONE' END, 1, ingested_at,
       ingested_at, tenant_id, audience_id
FROM artifact_revision;

INSERT INTO extraction (artifact_uid, revision_id, job_id, generation, run_id, requested_by,
    extractor, model, extract_version, merge_version, chunks, cache_hits, events, tenant_id,
    audience_id)
SELECT artifact_uid, revision_id, md5('job' || revision_id)::uuid, 1, 'run', 'ingest', 'rules',
       'rules', '1', '1', 1, 0, 0, tenant_id, audience_id
FROM artifact_revision;

INSERT INTO event_evidence (
    evidence_id, event_id, artifact_uid, revision_id, start_char, end_char, quote, created_at,
    tenant_id, audience_id)
SELECT md5(event_id::text || k)::uuid, event_id, artifact_uid, revision_id,
       (place - 1) * {_SLOT}, (place - 1) * {_SLOT} + length(quote), quote, created_at,
       tenant_id, audience_id
FROM (
    SELECT e.event_id, e.artifact_uid, e.revision_id, e.created_at, e.tenant_id,
           e.audience_id, q.k,
           left(q.quote, {_SLOT}) AS quote,
           row_number() OVER (PARTITION BY e.artifact_uid, e.revision_id ORDER BY e.event_id, q.k)
               AS place
    FROM semantic_event e
    CROSS JOIN LATERAL string_to_table(e.quotes, chr(10)) WITH ORDINALITY AS q (quote, k)
) AS placed;

INSERT INTO revision_text (artifact_uid, revision_id, content, tenant_id, audience_id)
SELECT artifact_uid, revision_id, coalesce(t.content, ' '), r.tenant_id, r.audience_id
FROM artifact_revision r
LEFT JOIN (SELECT artifact_uid, revision_id,
                  string_agg(rpad(quote, {_SLOT}), '' ORDER BY start_char) AS content
           FROM event_evidence GROUP BY artifact_uid, revision_id) AS t
    USING (artifact_uid, revision_id);

UPDATE artifact_revision r
SET is_chunked = true, chunk_count = ceil((length(t.content) - {_CHUNK}) / {_STEP}.0) + 1
FROM revision_text t
WHERE (t.artifact_uid, t.revision_id) = (r.artifact_uid, r.revision_id)
  AND length(t.content) > {_ONE_PIECE};

INSERT INTO revision_chunk (
    artifact_uid, revision_id, chunk_index, chunk_id, start_char, end_char, token_count,
    content_hash, text, words, tenant_id, audience_id)
SELECT r.artifact_uid, r.revision_id, k.index,
       CASE WHEN r.is_chunked THEN r.artifact_id || '_' || k.index ELSE r.artifact_id END,
       k.start, k.start + length(k.text), length(k.text) / 4, r.content_hash,
       CASE WHEN r.is_chunked THEN k.text END,
       CASE WHEN k.index = 0
            THEN setweight(words_of_text(r.title), 'A') || words_of_text(k.text)
            ELSE words_of_text(k.text) END,
       r.tenant_id, r.audience_id
FROM artifact_revision r JOIN revision_text t USING (artifact_uid, revision_id)
CROSS JOIN LATERAL (
    SELECT n AS index, n * {_STEP} AS start,
           CASE WHEN r.is_chunked THEN substr(t.content, n * {_STEP} + 1, {_CHUNK})
                ELSE t.content END AS text
    FROM generate_series(0, r.chunk_count - 1) AS n) AS k;

INSERT INTO chunk_entry (
    artifact_uid, revision_id, chunk_index, is_chunked, time, artifact_type, source_system, length,
    tenant_id, audience_id)
SELECT artifact_uid, revision_id, c.chunk_index, is_chunked, source_ts, artifact_type,
       source_system, c.end_char - c.start_char, r.tenant_id, r.audience_id
FROM artifact_revision r JOIN revision_chunk c USING (artifact_uid, revision_id) WHERE is_latest;

INSERT INTO revision_period (artifact_uid, revision_id, since, until, tenant_id, audience_id)
SELECT artifact_uid, revision_id, latest_since,
       CASE WHEN NOT is_latest THEN greatest(latest_since, max(latest_since) OVER (
           PARTITION BY artifact_uid)) END,
       tenant_id, audience_id
FROM artifact_revision;

INSERT INTO passage_statistics (tenant_id, passages, characters)
SELECT tenant_id, count(*), sum(length) FROM chunk_entry GROUP BY tenant_id;

INSERT INTO word_frequency (tenant_id, lexeme, passages)
SELECT s.tenant_id, w.lexeme, count(*)
FROM chunk_entry s JOIN revision_chunk c USING (artifact_uid, revision_id, chunk_index)
CROSS JOIN LATERAL unnest(tsvector_to_array(c.words)) AS w (lexeme)
GROUP BY s.tenant_id, w.lexeme;

INSERT INTO event_actor (event_id, position, ref, name_key, role, tenant_id, audience_id)
SELECT e.event_id, a.position, a.actor ->> 'ref', name_key(a.actor ->> 'ref'), a.actor ->> 'role',
       e.tenant_id, e.audience_id
FROM semantic_event e
CROSS JOIN LATERAL jsonb_array_elements(e.actors_json) WITH ORDINALITY AS a (actor, position);

INSERT INTO event_entry (
    event_id, event_time, due_time, created_at, confidence, is_latest, tenant_id, audience_id)
SELECT event_id, coalesce(due_time, event_time), due_time, created_at, confidence, is_latest,
       tenant_id, audience_id
FROM semantic_event;

INSERT INTO actor_name (tenant_id, name_key)
SELECT DISTINCT tenant_id, name_key FROM event_actor;

-- Every tenth document gives a short name of one person.
INSERT INTO revision_entity (
    artifact_uid, revision_id, name, type, aliases, tenant_id, audience_id)
SELECT DISTINCT ON (e.artifact_uid, e.revision_id) e.artifact_uid, e.revision_id, a.ref, 'person',
       ARRAY[left(a.ref, 1) || split_part(a.ref, ' ', 2)], e.tenant_id, e.audience_id
FROM semantic_event e JOIN event_actor a USING (event_id)
WHERE hashtext(e.revision_id) % 10 = 0
ORDER BY e.artifact_uid, e.revision_id, e.event_id, a.position;
"""


# Documents are spread over tenants; in each, alice sees all of them: a fifth is hers alone, three
# tenths are for her group, half is for all.
_SPREAD = """
INSERT INTO tenant (tenant_id, name)
SELECT md5('tenant' || n)::uuid, 'tenant-' || n FROM generate_series(0, {tenants} - 1) AS n;
INSERT INTO audience (audience_id, tenant_id, members)
SELECT 10 + 3 * n + kind, md5('tenant' || n)::uuid,
       (ARRAY['{{user:alice}}', '{{group:sales,user:alice}}', '{{org}}'])[kind + 1]::text[]
FROM generate_series(0, {tenants} - 1) AS n, generate_series(0, 2) AS kind;
INSERT INTO audience_member (tenant_id, member, audience_id)
SELECT tenant_id, member, audience_id FROM audience, unnest(members) AS member
WHERE audience_id >= 10;
UPDATE artifact_revision r
SET tenant_id = md5('tenant' || n.number)::uuid, owner = 'alice', audience_id = 10 + 3 * n.number
    + CASE WHEN n.dice < 20 THEN 0 WHEN n.dice < 50 THEN 1 ELSE 2 END
FROM (SELECT DISTINCT artifact_uid AS uid, abs(hashtext(artifact_uid)) %% {tenants} AS number,
             abs(hashtext(artifact_uid || 'audience')) %% 100 AS dice
      FROM artifact_revision) n
WHERE n.uid = r.artifact_uid;
UPDATE semantic_event e SET tenant_id = r.tenant_id, audience_id = r.audience_id
FROM artifact_revision r
WHERE (r.artifact_uid, r.revision_id) = (e.artifact_uid, e.revision_id);
ANALYZE artifact_revision, semantic_event;
"""


@dataclass(frozen=True, slots=True)
class Size:
    events: int
    revisions: int
    quotes: int = 5  # at most, per event; on average half of it and a half
    tenants: int = 0  # 0: all is the local user's


@dataclass(frozen=True, slots=True)
class _Revision:
    number: int
    uid: str
    id: str
    at: datetime
    title: str
    is_latest: bool


def fingerprint(size: Size) -> str:
    """Of the schema and of what makes the data: another version is another data directory."""
    marks = [migration.checksum for migration in migrations.shipped()]
    marks += [Path(path).read_text(encoding="utf-8") for path in (__file__, event_words.__file__)]
    return sha256("".join([*marks, str(size)]).encode()).hexdigest()[:8]


def fill(connection: psycopg.Connection, size: Size) -> None:
    """Into an empty, migrated database; on a connection of its own, as superuser, autocommit."""
    # What the triggers would do row by row is done in bulk here.
    connection.execute("SET session_replication_role = replica")
    connection.execute("SET maintenance_work_mem = '512MB'")
    connection.execute("SET work_mem = '256MB'")
    connection.execute("SET synchronous_commit = off")
    indexes = _set_indexes_aside(connection)
    dice = random.Random(_SEED)
    words = _Skewed([word(rank) for rank in range(WORDS)], 10)
    revisions = list(_revisions(dice, words, size.revisions))
    _copy(connection, _COPY_REVISIONS, (_revision_row(dice, item) for item in revisions))
    _copy(connection, _COPY_EVENTS, _events(dice, words, revisions, size))
    if size.tenants:
        spread = _SPREAD.format(tenants=size.tenants).replace("%%", "%")
        connection.execute(spread.encode())
    connection.execute(_DERIVED.encode())
    for definition in indexes:
        connection.execute(definition)
    connection.execute("RESET session_replication_role")
    connection.execute("VACUUM (ANALYZE)")


def word(rank: int) -> str:
    """The word of that rank, 0 being the most common."""
    if rank < len(COMMON):
        return COMMON[rank]
    return "".join(SYLLABLES[rank // step % 40] for step in (1, 40, 1600))


def person(rank: int) -> str:
    first = FIRST_NAMES[rank % len(FIRST_NAMES)]
    return f"{first} {word(_PERSON_WORDS + rank).capitalize()}"


class _Skewed:
    """Picks rank k with a chance of about 1 / (k + flat)."""

    def __init__(self, values: list[str], flat: int) -> None:
        self._values = values
        self._weights = list(accumulate(1 / (rank + flat) for rank in range(len(values))))

    def pick(self, dice: random.Random, many: int) -> list[str]:
        return dice.choices(self._values, cum_weights=self._weights, k=many)


def _revisions(dice: random.Random, words: _Skewed, many: int) -> Iterator[_Revision]:
    at, step = datetime(2016, 1, 1, tzinfo=UTC), timedelta(days=3650) / many
    for number in range(many):
        # Of five, the fourth is superseded by the fifth.
        document = number - 1 if number % 5 == 4 else number
        yield _Revision(
            number=number,
            uid=f"uid_{document:016x}",
            id=f"rev_{number:016x}",
            at=at + step * number + timedelta(hours=dice.randrange(480)),
            title=" ".join(words.pick(dice, 3)),
            is_latest=number % 5 != 3,
        )


def _revision_row(dice: random.Random, item: _Revision) -> tuple[Any, ...]:
    kind = dice.choice(("email", "email", "email", "chat", "chat", "doc", "note", "transcript"))
    system = dice.choice(("gmail", "gmail", "slack", "drive"))
    return (
        *(item.uid, item.id, f"art_{item.number:016x}", kind, system, f"source-{item.uid}"),
        *(item.at, item.title, f"{item.number:064x}", 300, False, 1, item.is_latest, item.at),
        *(f"bench:{item.number}", item.at),
    )


def _events(
    dice: random.Random, words: _Skewed, revisions: list[_Revision], size: Size
) -> Iterator[tuple[Any, ...]]:
    people = _Skewed([person(rank) for rank in range(PEOPLE)], 3)
    subjects = _Skewed([word(rank) for rank in range(SUBJECTS)], 5)
    left = size.events
    for position, revision in enumerate(revisions):
        wanted = int(2.1 / (dice.random() + 0.04))
        # The last documents take what is left, so that the number comes out right.
        wanted = min(wanted, left) if position < len(revisions) - 1 else left
        for _ in range(wanted):
            number = size.events - left
            quotes = 1 + number % size.quotes
            yield _event_row(dice, words, people, subjects, revision, number, quotes)
            left -= 1


def _event_row(
    dice: random.Random,
    words: _Skewed,
    people: _Skewed,
    subjects: _Skewed,
    revision: _Revision,
    number: int,
    quotes: int,
) -> tuple[Any, ...]:
    drawn = words.pick(dice, 9 + 3 * quotes)
    said = " ".join(drawn[:9])
    involved = people.pick(dice, dice.choice((0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3)))
    roles = ("owner", "contributor", "reviewer")
    time = revision.at + timedelta(days=dice.randrange(-20, 40)) if dice.random() < 0.9 else None
    category = dice.choice(_CATEGORIES)
    times = (revision.at, time) if category == "Commitment" else (time, None)
    return (
        *(str(UUID(int=dice.getrandbits(128))), revision.uid, revision.id),
        *(category, *times, f"{said.capitalize()} in case{number % CASES}."),
        Jsonb({"type": "project", "ref": f"{subjects.pick(dice, 1)[0]} project"}),
        Jsonb([{"ref": ref, "role": role} for ref, role in zip(involved, roles, strict=False)]),
        *(
            round(0.5 + dice.random() / 2, 2),
            str(UUID(md5(f"job{revision.id}".encode()).hexdigest())),
        ),
        revision.at,
        "\n".join(" ".join([said, *drawn[9 + 3 * k : 12 + 3 * k]]) for k in range(quotes)),
        *(revision.title, revision.is_latest),
    )


def _copy(connection: psycopg.Connection, statement: str, rows: Iterator[tuple[Any, ...]]) -> None:
    with connection.cursor().copy(statement.encode()) as copy:
        for row in rows:
            copy.write_row(row)


def _set_indexes_aside(connection: psycopg.Connection) -> list[bytes]:
    """Drop the indexes that are not constraints; the statements that make them again."""
    rows = connection.execute(
        "SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid), "
        "ARRAY(SELECT attnum FROM pg_attribute a "
        "      WHERE a.attrelid = i.indexrelid AND a.attstattarget = 0 ORDER BY attnum) "
        "FROM pg_index i WHERE i.indrelid = ANY(%s::regclass[]) AND NOT i.indisunique",
        [list(_TABLES)],
    ).fetchall()
    statements = []
    for name, definition, unanalysed in rows:
        connection.execute(f"DROP INDEX {name}".encode())
        statements.append(definition.encode())
        for number in unanalysed:
            alter = f"ALTER INDEX {name} ALTER COLUMN {number} SET STATISTICS 0"
            statements.append(alter.encode())
    return statements
