"""The compiled loops: arrays in, arrays out.

Nothing here depends on the registry or on a booster, and importing this package does not
import the compiler. Objectives and metrics load a kernel with
:mod:`gbmrank.kernels.jit.compiler` when they first need it.
"""
