"""Webhooks: subscribers receive changes as HTTP requests, by the Standard Webhooks rules."""
