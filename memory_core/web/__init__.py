"""What every HTTP server of ours has in common: who may ask it, how much, and for how long.

`admission` knows the rule, `guard` puts it in front of an application, `connections` bounds what
happens before an application is asked. Nothing here knows Dagster or MCP.
"""
