"""Prediction files of courses: checks, scores, and what is wrong with their models."""
