"""The terminal cockpit for Kernel Design Agents."""

__version__ = "0.1.0"
