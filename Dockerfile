# One image for the MCP server and the three Dagster services.
FROM python:3.12-slim

ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /app

COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY memory_core memory_core
COPY stack stack
COPY memory_assets memory_assets
COPY mcp_server mcp_server
COPY sql sql
COPY demo demo
COPY dagster.yaml workspace.yaml ./
RUN pip install -c constraints.txt '.[formats]' && useradd --create-home --uid 10001 memory

# DAGSTER_HOME is /app: the instance's configuration beside the workspace it serves.
# The program may write there alone: its code and configuration belong to root. The last one is for the
# code server's socket, which a volume shares among Dagster's services.
RUN install -d -m 700 -o memory -g memory /app/.data /app/storage /app/logs /app/.logs_queue /run/mcp-memory
ENV DAGSTER_HOME=/app DATA_DIR=/app/.data
USER memory

CMD ["mcp-memory", "serve"]
