"""The loop: phases, gates, budget, decisions, child processes, detaching."""
