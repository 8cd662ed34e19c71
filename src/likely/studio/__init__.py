"""The studio: a page on your own machine where a person sees the data, the models, and what they believe.

`likely studio table.csv` starts it. Pages are made on the server, a script of a few lines fetches their parts anew, and
all that is computed is a call of the public library.
"""

__all__: list[str] = []
