"""The ``cuda`` device: PyCUDA for contexts, memory, streams and events; cuda-bindings for launches."""
