"""Bipartite ranking, of Menon and Williamson 2014."""
