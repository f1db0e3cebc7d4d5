"""Utilities for all packages: settings, errors, files, progress, the entry point."""
