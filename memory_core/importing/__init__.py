"""Importing: a person's own files, mail, chats and history become artifacts.

walk → read → recognise → parse → compare with what is stored → ingest. Every file is on its own:
one that cannot be read is reported and never stops the rest.
"""
