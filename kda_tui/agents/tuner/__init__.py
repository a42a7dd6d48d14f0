"""The tuner: an agent without a model that searches the declared tunables of a candidate."""
