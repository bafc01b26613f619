"""Telemetry: the audit of calls, traces and metrics."""
