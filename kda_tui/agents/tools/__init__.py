"""What an agent may do, as tools with schemas: read, submit, measure, ask. No shell, no network, no other path."""
