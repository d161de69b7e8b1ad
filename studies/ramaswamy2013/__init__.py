"""Low-rank surrogates of Ramaswamy et al. 2013."""
