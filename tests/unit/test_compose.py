"""Production in containers: docker-compose.yml, the image and the settings agree.

Docker is not needed: the files are read and compared with the program they are for.
"""

import importlib
import importlib.metadata
import re
import tomllib
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from memory_core.kernel.env_file import COMPOSE_ONLY
from memory_core.kernel.settings import Settings, variable_names
from stack import exposure
from stack.services import CODE_MODULE, dagster_storage_url

PROJECT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((PROJECT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text())

# Services that are ours, of one image; and those of them that run for ever.
OURS = {"migrate", "worker", "mcp-server", "dagster-code", "dagster-webserver", "dagster-daemon"}
DAGSTER = {"dagster-code", "dagster-webserver", "dagster-daemon"}
# Those that read the user's settings; the others need none of them.
READING_SETTINGS = {"mcp-server", "worker", "dagster-code"}
CODE_SOCKET = "/run/mcp-memory/code.sock"
LONG_RUNNING = SERVICES.keys() - {"migrate"}
REFERENCE = re.compile(r"\$\{(\w+)(?::?([-?])([^}]*))?\}")


def variables_read_by(file: str) -> set[str]:
    """Names under `env:` in one of Dagster's files."""

    def walk(node: object) -> set[str]:
        if isinstance(node, dict):
            return {node["env"]} if set(node) == {"env"} else walk(list(node.values()))
        return set().union(*map(walk, node)) if isinstance(node, list) else set()

    return walk(yaml.safe_load((PROJECT / file).read_text()))


DAGSTER_VARIABLES = variables_read_by("dagster.yaml") | variables_read_by("workspace.yaml")


def dockerfile() -> list[tuple[str, str]]:
    """Instructions and their arguments, continued lines joined."""
    text = (PROJECT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines]


def published(service: str) -> list[tuple[str, int, int]]:
    """(address, port outside, port inside) of each."""
    ports = [str(port).rsplit(":", 2) for port in SERVICES[service].get("ports", [])]
    return [(address, int(outside), int(inside)) for address, outside, inside in ports]


class TestServices:
    def test_every_part_is_a_service_of_its_own(self) -> None:
        assert SERVICES.keys() == OURS | {"postgres", "chroma"}

    def test_ours_are_of_one_image(self) -> None:
        assert len({SERVICES[name]["image"] for name in OURS}) == 1
        assert all(SERVICES[name]["build"] == "." for name in OURS)

    def test_postgres_is_the_version_the_tests_run_on(self) -> None:
        assert SERVICES["postgres"]["image"] == "postgres:16"

    def test_chroma_is_the_version_that_is_pinned(self) -> None:
        pinned = re.search(r"(?m)^chromadb==(\S+)$", (PROJECT / "constraints.txt").read_text())
        assert pinned is not None
        assert SERVICES["chroma"]["image"] == f"chromadb/chroma:{pinned[1]}"

    @pytest.mark.parametrize("name", sorted(LONG_RUNNING))
    def test_each_has_a_health_check(self, name: str) -> None:
        check = SERVICES[name]["healthcheck"]
        assert check["test"][0] in {"CMD", "CMD-SHELL"}
        assert check.keys() >= {"interval", "timeout", "retries"}

    @pytest.mark.parametrize("name", sorted(LONG_RUNNING))
    def test_each_is_started_again_when_it_ends(self, name: str) -> None:
        assert SERVICES[name]["restart"] == "unless-stopped"

    def test_the_migration_runs_once(self) -> None:
        assert SERVICES["migrate"]["restart"] == "no"

    @pytest.mark.parametrize("name", sorted(SERVICES))
    def test_it_waits_for_what_it_needs_to_be_ready(self, name: str) -> None:
        for needed, how in SERVICES[name].get("depends_on", {}).items():
            finishes = needed == "migrate"
            assert how["condition"] == (
                "service_completed_successfully" if finishes else "service_healthy"
            )

    def test_no_process_of_ours_runs_before_the_schema_is_there(self) -> None:
        def needs(name: str) -> set[str]:
            direct = set(SERVICES[name].get("depends_on", {}))
            return direct.union(*map(needs, direct))

        for name in OURS - {"migrate"}:
            assert {"migrate", "postgres", "chroma"} <= needs(name), name


class TestPorts:
    @pytest.mark.parametrize(
        ("service", "outside", "inside"),
        [
            ("mcp-server", 3000, 3000),
            ("dagster-webserver", 3001, 3001),
        ],
    )
    def test_published(self, service: str, outside: int, inside: int) -> None:
        assert [ports[1:] for ports in published(service)] == [(outside, inside)]

    def test_nothing_else_is_published(self) -> None:
        with_ports = {name for name in SERVICES if published(name)}
        # Chroma and Postgres are not: who reaches Chroma needs no password.
        assert with_ports == {"mcp-server", "dagster-webserver"}

    def test_nothing_is_published_beyond_this_machine(self) -> None:
        # There is no TLS: a reverse proxy is the operator's decision.
        addresses = {port[0] for name in SERVICES for port in published(name)}
        assert addresses == {"127.0.0.1"}

    def test_inside_they_are_what_the_variables_say(self) -> None:
        environment = SERVICES["mcp-server"]["environment"]
        assert environment["MCP_PORT"] == str(published("mcp-server")[0][2])
        assert environment["CHROMA_HOST"] in SERVICES
        command = SERVICES["dagster-webserver"]["command"]
        assert command[command.index("-p") + 1] == str(published("dagster-webserver")[0][2])
        assert command[command.index("-h") + 1] == "0.0.0.0"

    @pytest.mark.parametrize(
        ("service", "asked"),
        [("mcp-server", ":3000"), ("dagster-webserver", ":3001"), ("dagster-code", CODE_SOCKET)],
    )
    def test_the_health_check_asks_the_service_where_it_listens(
        self, service: str, asked: str
    ) -> None:
        assert asked in " ".join(SERVICES[service]["healthcheck"]["test"])


class TestOpenDoors:
    @pytest.mark.parametrize("chosen", ["", "oauth"])
    def test_the_mcp_server_asks_its_clients_who_they_are(self, chosen: str) -> None:
        environment = SERVICES["mcp-server"]["environment"]
        auth = REFERENCE.sub(lambda found: chosen or str(found[3]), environment["AUTH"])
        assert auth == (chosen or "keys")
        settings = Settings(
            _env_file=None,
            mcp_host=environment["MCP_HOST"],
            auth=auth,
            oauth_issuer="https://login.example",
            oauth_audience="https://memory.example/mcp",
        )
        assert exposure.check(settings, dagster=False) is None

    """What a service can reach and read if another one is taken over."""

    def test_the_code_server_listens_on_a_socket_and_no_port(self) -> None:
        command = SERVICES["dagster-code"]["command"]
        assert command[command.index("--socket") + 1] == CODE_SOCKET
        assert not {"-p", "--port", "-h", "--host"} & set(command)

    def test_only_dagsters_services_share_that_socket(self) -> None:
        place = str(PurePosixPath(CODE_SOCKET).parent)
        sharing = {
            name
            for name, service in SERVICES.items()
            if f"dagster-socket:{place}" in service.get("volumes", [])
        }
        assert sharing == DAGSTER
        assert {SERVICES[name]["environment"]["DAGSTER_CODE_SOCKET"] for name in DAGSTER} == {
            CODE_SOCKET
        }

    def test_the_folder_of_the_socket_is_private_to_the_user_of_the_image(self) -> None:
        place = str(PurePosixPath(CODE_SOCKET).parent)
        made = " ".join(args for instruction, args in dockerfile() if instruction == "RUN")
        assert re.search(rf"install -d -m 700 -o memory -g memory .*{place}\b", made)

    def test_chroma_is_reached_by_those_who_need_it_alone(self) -> None:
        reaching = {name for name, service in SERVICES.items() if "vectors" in service["networks"]}
        assert reaching == {"chroma", "mcp-server", "worker", "dagster-code"}
        assert SERVICES["chroma"]["networks"] == ["vectors"]

    def test_postgres_has_no_way_out(self) -> None:
        assert SERVICES["postgres"]["networks"] == ["database"]

    def test_the_networks_of_the_stores_are_closed(self) -> None:
        closed = {name for name, network in COMPOSE["networks"].items() if network}
        assert closed == {"database", "vectors"}
        assert all(COMPOSE["networks"][name]["internal"] for name in closed)

    def test_every_network_is_declared(self) -> None:
        used = {network for service in SERVICES.values() for network in service["networks"]}
        assert used == COMPOSE["networks"].keys()

    @pytest.mark.parametrize("name", sorted(OURS))
    def test_ours_run_without_privileges(self, name: str) -> None:
        assert SERVICES[name]["cap_drop"] == ["ALL"]
        assert SERVICES[name]["security_opt"] == ["no-new-privileges:true"]

    def test_the_program_cannot_change_its_own_code(self) -> None:
        made = " ".join(args for instruction, args in dockerfile() if instruction == "RUN")
        assert "chown -R" not in made


class TestCommands:
    @pytest.mark.parametrize("name", sorted(OURS))
    def test_the_program_comes_with_the_image(self, name: str) -> None:
        program = SERVICES[name]["command"][0]
        scripts = {entry.name for entry in importlib.metadata.entry_points(group="console_scripts")}
        assert program in scripts

    @pytest.mark.parametrize("name", sorted(OURS))
    def test_its_distribution_is_a_dependency_of_ours(self, name: str) -> None:
        program = SERVICES[name]["command"][0]
        [entry] = importlib.metadata.entry_points(group="console_scripts", name=program)
        assert entry.dist is not None
        needed = {re.split(r"[\[<>=]", line)[0] for line in PYPROJECT["project"]["dependencies"]}
        assert entry.dist.name in needed | {PYPROJECT["project"]["name"]}

    def test_our_own_commands_exist(self) -> None:
        from mcp_server.cli import app

        commands = {
            command.name or command.callback.__name__ for command in app.registered_commands
        }
        asked = {
            SERVICES[name]["command"][1]
            for name in OURS
            if SERVICES[name]["command"][0] == "mcp-memory"
        }
        assert asked == {"migrate", "serve", "worker"}
        assert asked <= commands

    def test_the_code_server_loads_the_module_of_the_embedded_stack(self) -> None:
        command = SERVICES["dagster-code"]["command"]
        module = command[command.index("-m") + 1]
        assert module == CODE_MODULE
        assert importlib.import_module(module).defs

    @pytest.mark.parametrize("name", ["dagster-webserver", "dagster-daemon"])
    def test_the_workspace_file_is_in_the_image(self, name: str) -> None:
        command = SERVICES[name]["command"]
        assert command[command.index("-w") + 1] == "workspace.yaml"
        assert "workspace.yaml" in _copied()


class TestVariables:
    @pytest.mark.parametrize("name", sorted(OURS))
    def test_each_one_set_is_read_by_a_service(self, name: str) -> None:
        unknown = SERVICES[name]["environment"].keys() - variable_names() - DAGSTER_VARIABLES
        assert unknown == set()

    @pytest.mark.parametrize("name", sorted(DAGSTER))
    def test_each_one_that_dagster_reads_is_set(self, name: str) -> None:
        assert SERVICES[name]["environment"].keys() >= DAGSTER_VARIABLES

    @pytest.mark.parametrize("name", sorted(OURS))
    def test_the_settings_accept_them(self, name: str) -> None:
        environment = SERVICES[name]["environment"]
        values = {
            variable.lower(): REFERENCE.sub(_filled, str(value))
            for variable, value in environment.items()
            if variable in variable_names()
        }
        Settings(_env_file=None, **values)

    def test_the_mcp_server_is_reachable_from_outside_its_container(self) -> None:
        assert SERVICES["mcp-server"]["environment"]["MCP_HOST"] == "0.0.0.0"

    @pytest.mark.parametrize("name", sorted(READING_SETTINGS))
    def test_both_stores_are_named_to_those_who_use_them(self, name: str) -> None:
        environment = SERVICES[name]["environment"]
        assert environment.keys() >= {"EVENTS_DB_DSN", "CHROMA_HOST", "CHROMA_PORT"}

    def test_the_model_key_goes_to_those_who_ask_the_model_alone(self) -> None:
        with_dot_env = {name for name in SERVICES if "env_file" in SERVICES[name]}
        assert with_dot_env == READING_SETTINGS

    def test_the_rest_get_no_more_than_they_read(self) -> None:
        def names(service: str) -> set[str]:
            return set(SERVICES[service]["environment"])

        assert names("migrate") == {"EVENTS_DB_DSN"}
        assert names("dagster-daemon") == DAGSTER_VARIABLES | {"EVENTS_DB_DSN"}
        assert names("dagster-webserver") == DAGSTER_VARIABLES | {
            "ALLOWED_HOSTS",
            "ALLOWED_ORIGINS",
        }

    def test_dagster_keeps_its_tables_where_the_embedded_stack_does(self) -> None:
        dsn = REFERENCE.sub(_filled, SERVICES["mcp-server"]["environment"]["EVENTS_DB_DSN"])
        for name in DAGSTER:
            url = REFERENCE.sub(_filled, SERVICES[name]["environment"]["DAGSTER_PG_URL"])
            assert url == dagster_storage_url(dsn)

    def test_the_dsn_names_the_postgres_service_and_its_database(self) -> None:
        database = SERVICES["postgres"]["environment"]
        dsn = SERVICES["mcp-server"]["environment"]["EVENTS_DB_DSN"]
        assert dsn == (
            f"postgresql://{database['POSTGRES_USER']}:{database['POSTGRES_PASSWORD']}"
            f"@postgres:5432/{database['POSTGRES_DB']}"
        )

    def test_they_read_the_users_dot_env(self) -> None:
        for name in READING_SETTINGS:
            assert [entry["path"] for entry in SERVICES[name]["env_file"]] == [".env"]

    def test_what_the_user_puts_there_for_compose_does_not_stop_the_program(self) -> None:
        text = (PROJECT / "docker-compose.yml").read_text()
        assert {match[0] for match in REFERENCE.findall(text)} <= COMPOSE_ONLY | variable_names()


class TestSecrets:
    def test_the_password_has_no_default(self) -> None:
        text = (PROJECT / "docker-compose.yml").read_text()
        references = REFERENCE.findall(text)
        assert {how for name, how, _ in references if "PASSWORD" in name} == {"?"}

    def test_no_password_or_key_is_written_down(self) -> None:
        for name, service in SERVICES.items():
            for variable, value in (service.get("environment") or {}).items():
                if re.search("PASSWORD|KEY|SECRET|TOKEN$", variable):
                    assert REFERENCE.fullmatch(str(value)), f"{variable} of {name}"
                for password in re.findall(r"://[^:/]+:(.*?)@", str(value)):
                    assert REFERENCE.fullmatch(password), f"{variable} of {name}"

    def test_the_image_holds_none_either(self) -> None:
        ignored = (PROJECT / ".dockerignore").read_text().split()
        assert {".env", ".git", ".data"} <= set(ignored)
        assert not [args for _, args in dockerfile() if re.search("(?i)password|secret|key", args)]


class TestVolumes:
    def test_both_stores_keep_their_data_in_a_named_volume(self) -> None:
        for name, place in (("postgres", "/var/lib/postgresql/data"), ("chroma", "/data")):
            volume, inside = SERVICES[name]["volumes"][0].split(":")
            assert volume in COMPOSE["volumes"]
            assert inside == place

    def test_every_named_volume_is_used(self) -> None:
        used = {
            mount.split(":")[0]
            for service in SERVICES.values()
            for mount in service.get("volumes", [])
        }
        assert used == COMPOSE["volumes"].keys()


class TestImage:
    def test_it_holds_everything_that_the_wheel_carries(self) -> None:
        wheel = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
        assert {*wheel["packages"], *wheel["force-include"]} <= _copied()

    def test_it_holds_what_the_installation_reads(self) -> None:
        assert {"pyproject.toml", "constraints.txt", PYPROJECT["project"]["readme"]} <= _copied()

    def test_it_holds_dagsters_configuration_where_dagster_looks_for_it(self) -> None:
        assert {"dagster.yaml", "workspace.yaml"} <= _copied()
        workdir = next(args for instruction, args in dockerfile() if instruction == "WORKDIR")
        environment = " ".join(args for instruction, args in dockerfile() if instruction == "ENV")
        assert f"DAGSTER_HOME={workdir}" in environment

    def test_everything_it_copies_exists(self) -> None:
        assert [name for name in _copied() if not (PROJECT / name).exists()] == []

    def test_what_it_copies_is_not_ignored(self) -> None:
        assert _copied() & set((PROJECT / ".dockerignore").read_text().split()) == set()

    def test_versions_are_the_pinned_ones(self) -> None:
        installs = [args for _, args in dockerfile() if "pip install" in args]
        assert installs
        assert all("-c constraints.txt" in args for args in installs)

    def test_it_does_not_run_as_root(self) -> None:
        users = [args for instruction, args in dockerfile() if instruction == "USER"]
        assert users
        assert users[-1] not in {"root", "0"}

    def test_its_python_is_one_we_support(self) -> None:
        base = next(args for instruction, args in dockerfile() if instruction == "FROM")
        version = re.match(r"python:(\d+)\.(\d+)", base)
        assert version is not None
        assert (int(version[1]), int(version[2])) >= (3, 11)


def _copied() -> set[str]:
    """Files and folders of the project that the image gets."""
    arguments = [args.split()[:-1] for instruction, args in dockerfile() if instruction == "COPY"]
    return {name for names in arguments for name in names if not name.startswith("--")}


def _filled(reference: re.Match[str]) -> str:
    """What compose puts there: a password, or a default."""
    return "some-password" if reference[2] == "?" else reference[3] or ""
