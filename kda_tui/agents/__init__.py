"""Players: they propose source text and ask for evaluations; they judge nothing."""
