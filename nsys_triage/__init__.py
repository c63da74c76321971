"""Reads NVIDIA Nsight Systems traces and says what keeps the GPU idle, what it costs and what to do next."""

__version__ = "0.1.0"
