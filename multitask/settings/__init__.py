"""The settings of a run: the methods, their rules, presets and a user's own methods.

No torch is imported here at module level.
"""
