"""The screen: a window on the record. It reads files, drops decisions, and runs nothing."""
