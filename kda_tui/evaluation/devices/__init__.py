"""Devices that kernels run on, behind one interface."""
