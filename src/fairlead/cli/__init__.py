"""The ``fairlead`` command: one file per sub-command; the only place that maps errors to exit codes."""
