# Every target is a few words around a script in bin/, so that a machine without make can do the same.
HEADLESS =

.PHONY: demo test test-slow bench lint clean

demo:
	@HEADLESS='$(HEADLESS)' sh bin/demo

test:
	@sh bin/test

test-slow:
	@sh bin/test -m 'slow and not gpu'

bench:
	@sh bin/bench

lint:
	@sh bin/lint

clean:
	rm -rf .venv .local .demo dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
