"""Finding, pinning and reading Agent Skills (the skills themselves live in /skills)."""
