"""The errors of reading data."""


class DataError(ValueError):
    """Data that cannot be read: which file, where in it, and what to do."""


class DataNotFoundError(DataError, FileNotFoundError):
    """Data that are not where they were looked for. Also a `FileNotFoundError`."""
