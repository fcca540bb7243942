"""Model files."""


class ModelFileError(ValueError):
    pass


def save(model, path): ...
def load(path): ...
