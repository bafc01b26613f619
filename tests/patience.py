"""How long a test waits for a signal before it counts as lost.

Only a test that fails waits this long. So it is generous: on a loaded machine a process may stand
still for many seconds.
"""

PATIENCE = 120.0
