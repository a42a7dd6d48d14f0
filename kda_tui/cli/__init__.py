"""The ``kda`` command. Each command parses its words, calls the rooms below, and prints; it decides nothing."""
