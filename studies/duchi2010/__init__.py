"""Consistency of ranking losses, of Duchi et al. 2010."""
