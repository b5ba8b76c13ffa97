"""The laws of noise, seen from outside: deviations, intervals, calibration."""
