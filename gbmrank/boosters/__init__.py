"""The doors to the boosters: the only files that know one."""
