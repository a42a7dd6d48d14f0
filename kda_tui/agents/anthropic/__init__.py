"""The agent that drives a model through the Anthropic API. Nothing here imports the SDK at module level."""
