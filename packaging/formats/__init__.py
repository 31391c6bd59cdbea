"""Formats of packages, one module each."""
