"""The base of all other packages: database, settings, errors, ids, times."""
