# One image for the MCP server and the three Dagster services.
FROM python:3.12-slim

ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /app

COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY memory_core memory_core
COPY memory_assets memory_assets
COPY mcp_server mcp_server
COPY sql sql
RUN pip install -c constraints.txt '.[formats]' && useradd --create-home --uid 10001 memory

# DAGSTER_HOME is /app: the instance's configuration beside the workspace it serves.
COPY dagster.yaml workspace.yaml ./
RUN mkdir -p /app/.data && chown -R memory:memory /app
ENV DAGSTER_HOME=/app
USER memory

CMD ["mcp-memory", "serve"]
