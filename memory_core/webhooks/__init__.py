"""Webhooks: receivers of other people are told of changes, by the Standard Webhooks rules."""
