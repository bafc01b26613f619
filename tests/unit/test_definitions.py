"""What Dagster is told: everything is there, and described for the people who look at it."""

from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import pytest
import yaml

from memory_assets.definitions import defs
from memory_assets.specs import asset_specs, code_versions, stages_made
from memory_core.extraction import prompts
from memory_core.extraction.rules import VERSION
from memory_core.kernel.settings import Settings
from memory_core.processing.stages import (
    CANONICAL_EVENTS,
    CHUNK_EXTRACTIONS,
    EVENT_INDEX,
    STAGES,
    STORED_EVENTS,
)
from memory_core.upkeep.integrity import CHECKS
from tests.pipeline_client import bump

OPERATIONS = ("pipeline_health", "housekeeping")
RULES = Settings(_env_file=None, extractor="rules")  # type: ignore[call-arg]
OPENAI = Settings(_env_file=None, extractor="openai", openai_api_key="sk-test")  # type: ignore[call-arg, arg-type]


@pytest.fixture(scope="module")
def repository() -> dg.RepositoryDefinition:
    return defs.get_repository_def()


def test_the_definitions_are_loadable() -> None:
    dg.Definitions.validate_loadable(defs)


def test_the_five_assets_follow_each_other(repository: dg.RepositoryDefinition) -> None:
    graph = repository.asset_graph

    keys = {key.to_user_string() for key in graph.get_all_asset_keys()}
    assert keys == {*STAGES, *OPERATIONS, "prompt_trial"}
    for before, stage in zip((None, *STAGES), STAGES, strict=False):
        parents = {key.to_user_string() for key in graph.get(dg.AssetKey(stage)).parent_keys}
        assert parents == ({before} if before else set())


@pytest.mark.parametrize("name", [*STAGES, *OPERATIONS])
def test_an_asset_says_what_it_is(repository: dg.RepositoryDefinition, name: str) -> None:
    asset = repository.asset_graph.get(dg.AssetKey(name))

    assert asset.description
    assert asset.owners == ["team:memory"]
    assert asset.kinds
    assert asset.group_name == ("semantic_events" if name in STAGES else "operations")
    assert asset.code_version or name in OPERATIONS


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_has_a_partition_per_revision(
    repository: dg.RepositoryDefinition, stage: str
) -> None:
    asset = repository.asset_graph.get(dg.AssetKey(stage))

    assert isinstance(asset.partitions_def, dg.DynamicPartitionsDefinition)
    assert asset.partitions_def.name == "revisions"
    assert asset.backfill_policy is not None
    assert asset.backfill_policy.max_partitions_per_run == 100


def test_sensors_jobs_schedules_and_checks_are_present(
    repository: dg.RepositoryDefinition,
) -> None:
    checks = repository.asset_graph.asset_check_keys

    assert {sensor.name for sensor in repository.sensor_defs} == {
        "pending_jobs",
        "release_after_failure",
        "release_after_cancel",
        "finished_trials",
        "first_look",
    }
    assert {job.name for job in repository.get_all_jobs()} >= {
        "documents_to_events",
        "integrity",
        "prompt_upgrade",
        "try_prompt",
    }
    assert {schedule.name for schedule in repository.schedule_defs} == {
        *(f"{check.name}_schedule" for check in CHECKS),
        "prompt_upgrade",
        "events_are_fresh_schedule",
        "pipeline_health_schedule",
        "housekeeping_schedule",
    }
    assert {(key.asset_key.to_user_string(), key.name) for key in checks} == {
        ("stored_events", "quotes_are_the_text_at_their_offsets"),
        ("stored_events", "every_revision_has_its_text"),
        ("stored_events", "every_quote_is_exact"),
        ("stored_events", "every_event_has_evidence"),
        ("stored_events", "one_latest_revision"),
        ("stored_events", "events_follow_their_revision"),
        ("stored_events", "words_lead_to_texts"),
        ("stored_events", "no_abandoned_jobs"),
        ("stored_events", "events_are_fresh"),
        ("event_index", "index_agrees"),
        ("event_index", "projections_keep_up"),
    }


def test_whatever_must_run_by_itself_runs_from_the_start(
    repository: dg.RepositoryDefinition,
) -> None:
    for sensor in repository.sensor_defs:
        assert sensor.default_status == dg.DefaultSensorStatus.RUNNING
    for schedule in repository.schedule_defs:
        assert schedule.default_status == dg.DefaultScheduleStatus.RUNNING


def test_jobs_and_checks_are_described(repository: dg.RepositoryDefinition) -> None:
    for job in repository.get_all_jobs():
        assert job.description or job.name == "__ASSET_JOB"
    for key in repository.asset_graph.asset_check_keys:
        assert repository.asset_graph.get_check_spec(key).description


def test_sensors_and_schedules_are_described(repository: dg.RepositoryDefinition) -> None:
    for automation in (*repository.sensor_defs, *repository.schedule_defs):
        assert automation.description, automation.name


def test_code_versions_follow_the_prompts() -> None:
    versions = code_versions(OPENAI)

    assert set(versions) == set(STAGES)
    assert versions[CHUNK_EXTRACTIONS] == f"openai-{prompts.load('extract').version}"
    assert versions[CANONICAL_EVENTS] == f"openai-{prompts.load('merge').version}"


@pytest.mark.parametrize("name", prompts.NAMES)
def test_whichever_prompt_is_raised_what_is_served_is_outdated(name: str, tmp_path: Path) -> None:
    changes = {"prompts_dir": bump(tmp_path, **{name: 2})}
    before, after = code_versions(OPENAI), code_versions(OPENAI.model_copy(update=changes))

    outdated = {stage for stage in STAGES if before[stage] != after[stage]}
    own = {"extract": CHUNK_EXTRACTIONS, "merge": CANONICAL_EVENTS}[name]
    assert outdated == {own, STORED_EVENTS, EVENT_INDEX}


def test_assets_can_be_found_by_what_they_cost_and_whom_they_serve(
    repository: dg.RepositoryDefinition,
) -> None:
    graph = repository.asset_graph
    tags = {key.to_user_string(): graph.get(key).tags for key in graph.get_all_asset_keys()}

    assert {name for name, of in tags.items() if of["cost"] == "model_calls"} == {
        *(CHUNK_EXTRACTIONS, CANONICAL_EVENTS, "prompt_trial")
    }
    assert {name for name, of in tags.items() if of["serves"] == "tools"} == {
        *(STORED_EVENTS, EVENT_INDEX)
    }


def test_code_versions_follow_the_rules_when_there_is_no_model() -> None:
    versions = code_versions(RULES)

    assert versions[CHUNK_EXTRACTIONS] == VERSION
    assert versions[CANONICAL_EVENTS] == "none"


def test_both_extractors_go_through_the_same_assets() -> None:
    for rules, openai in zip(asset_specs(RULES), asset_specs(OPENAI), strict=True):
        assert (rules.key, list(rules.deps)) == (openai.key, list(openai.deps))
        assert rules.description == openai.description


@pytest.mark.parametrize(
    ("selected", "made"),
    [
        (STAGES, STAGES),
        (["canonical_events", "event_index"], STAGES[2:]),
        (["chunk_extractions"], STAGES[1:]),
        ([], STAGES),
    ],
)
def test_what_follows_from_the_first_selected_asset_is_made_as_well(
    selected: Sequence[str], made: Sequence[str]
) -> None:
    assert stages_made(selected) == tuple(made)


def test_backfills_leave_a_place_for_fresh_work() -> None:
    instance = yaml.safe_load((Path(__file__).resolve().parents[2] / "dagster.yaml").read_text())
    runs = instance["run_coordinator"]["config"]

    limits = {limit["key"]: limit["limit"] for limit in runs["tag_concurrency_limits"]}
    assert limits.keys() == {"lane", "dagster/backfill"}
    assert sum(limits.values()) < runs["max_concurrent_runs"]
