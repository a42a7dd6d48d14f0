"""Workspaces that no program wrote: found, read and mapped to the records of our own, every doubt a finding."""
