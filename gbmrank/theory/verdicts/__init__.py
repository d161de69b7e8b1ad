"""Calibration verdicts on objectives and metrics, their conditions, and advice."""
