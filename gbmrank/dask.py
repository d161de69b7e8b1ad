"""Training across machines with Dask."""
