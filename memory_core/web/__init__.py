"""The protection that all our HTTP servers share: who may send requests, how large and how slow.

`admission` has the rule, `guard` applies it in front of an application, and `connections` limits
what happens before an application is called. Nothing here knows Dagster or MCP.
"""
