"""Importing: a person's own files, mail, chats and git history become artifacts.

walk → read → recognise → parse → compare with what is stored → ingest. Every file is independent:
one that cannot be read is reported and never stops the rest.
"""
