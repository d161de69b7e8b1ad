"""The compiled loops: arrays in, arrays out.

Nothing here knows a registry, a name or a booster, and importing this package does not
import the compiler. Objectives and metrics ask :mod:`gbmrank.kernels.jit.compiler` for a
kernel when they first need one.
"""
