"""Profiles: collecting them with ncu, reading them anywhere, hotspots and roofline."""
