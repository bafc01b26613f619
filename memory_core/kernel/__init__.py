"""What every other package stands on: database, settings, errors, ids, times."""
