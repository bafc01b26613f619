"""The specs of the five assets: what the UI shows of each, its dependencies and its code
version."""

from collections.abc import Callable, Iterable, Mapping

import dagster as dg

from memory_core.extraction import prompts
from memory_core.kernel.settings import Settings
from memory_core.processing.stages import (
    CANONICAL_EVENTS,
    CHUNK_EXTRACTIONS,
    CHUNK_TEXT,
    EVENT_INDEX,
    STAGES,
    STORED_EVENTS,
)

GROUP = "semantic_events"
OWNERS = ["team:memory"]

_DESCRIPTIONS = {
    CHUNK_TEXT: """\
The text of one revision, cut into chunks of about 900 tokens that overlap a little and tile the
text exactly. A short document is one chunk. Boundaries are chosen by content, so an edited
document keeps the chunks that the edit did not touch.""",
    CHUNK_EXTRACTIONS: """\
What the extractor proposes for each chunk: events with a quote, and entities. Answers of a model
are cached by passage, context, prompt version and model; materialising this asset by hand asks
again. A quote that is not found in the chunk rejects its event.""",
    CANONICAL_EVENTS: """\
The events of the revision, each occurrence once. Overlaps between chunks are merged by code; the
model only says which of the plausible duplicates belong together.""",
    STORED_EVENTS: """\
Events and evidence in Postgres, replaced in one transaction that also marks the job DONE. Every
quote equals the text at its offsets; the database refuses anything else.""",
    EVENT_INDEX: """\
The narratives in the events collection of their tenant in Chroma, for search by meaning, in step
with Postgres.""",
}
_KINDS = {
    CHUNK_TEXT: {"postgres", "python"},
    CHUNK_EXTRACTIONS: {"openai", "python"},
    CANONICAL_EVENTS: {"python"},
    STORED_EVENTS: {"postgres"},
    EVENT_INDEX: {"chroma"},
}
# Tags for the catalog: what making the asset again may cost, and whether tools answer from it.
_TAGS = {
    CHUNK_TEXT: {"cost": "none", "serves": "pipeline"},
    CHUNK_EXTRACTIONS: {"cost": "model_calls", "serves": "pipeline"},
    CANONICAL_EVENTS: {"cost": "model_calls", "serves": "pipeline"},
    STORED_EVENTS: {"cost": "none", "serves": "tools"},
    EVENT_INDEX: {"cost": "embeddings", "serves": "tools"},
}
DEPENDENCIES: dict[str, str] = dict(zip(STAGES[1:], STAGES, strict=False))


def stages_made(selected: Iterable[str]) -> tuple[str, ...]:
    """The stages that a run makes when these were selected: every stage after the first selected
    one is made again as well."""
    return STAGES[min((STAGES.index(stage) for stage in selected), default=0) :]


def code_versions(settings: Settings, extract_version: str | None = None) -> dict[str, str]:
    """The code versions that a fresh partition has. With `extract_version`: the code versions of a
    partition whose extractions have that version."""
    if settings.uses_openai_extractor:
        current = prompts.load("extract", settings.prompts_dir).version
        extract = f"openai-{extract_version or current}"
        merge = f"openai-{prompts.load('merge', settings.prompts_dir).version}"
    else:
        from memory_core.extraction.rules import VERSION

        extract, merge = VERSION, "none"
    # The served events depend on both versions, so their page must be outdated when either changes.
    both = f"{extract}+{merge}"
    return {
        CHUNK_TEXT: "1",
        CHUNK_EXTRACTIONS: extract,
        CANONICAL_EVENTS: merge,
        STORED_EVENTS: both,
        EVENT_INDEX: both,
    }


def version_tags(
    stage: str, code: Mapping[str, str], data_version: Callable[[str], str]
) -> dict[str, str]:
    """Version tags of a materialisation, by which Dagster can say that a partition is stale, and
    why. `data_version`: of a stage of this revision."""
    tags = {"dagster/code_version": code[stage], "dagster/data_version": data_version(stage)}
    if (upstream := DEPENDENCIES.get(stage)) is not None:
        tags[f"dagster/input_data_version/{upstream}"] = data_version(upstream)
        tags[f"dagster/input_event_pointer/{upstream}"] = "NULL"
    return tags


def asset_specs(settings: Settings) -> list[dg.AssetSpec]:
    versions = code_versions(settings)
    return [
        dg.AssetSpec(
            key=stage,
            deps=[DEPENDENCIES[stage]] if stage in DEPENDENCIES else [],
            description=_DESCRIPTIONS[stage],
            group_name=GROUP,
            owners=OWNERS,
            kinds=_KINDS[stage],
            tags=_TAGS[stage],
            code_version=versions[stage],
            skippable=True,
        )
        for stage in STAGES
    ]
