"""What was asked, by whom, how long it took and what it cost: the audit, traces and metrics."""
