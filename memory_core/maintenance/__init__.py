"""Upkeep: what nobody needs any more goes, in small steps, while everything else goes on."""
