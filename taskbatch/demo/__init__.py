"""`taskbatch demo`: a play in a few acts, on a server of its own.

`jobs` are the players and `load` what they are given to do; `story` tells the acts on the `stage`, a temporary
directory with an embedded server; `promises` holds the end against what was said; `voice` prints.
"""
