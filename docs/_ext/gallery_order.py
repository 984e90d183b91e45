"""The gallery's order: from a first fit to special cases; what is not listed comes last."""

ORDER = [
    "first_fit",
    "which_tasks_gain",
    "something_else",
    "coclusters",
    "mixed_model",
    "intervals",
    "new_tasks",
    "missing_targets",
    "text_sign_flip",
    "rank_and_penalty",
    "larger_than_memory",
]


class Order:
    """Key of an example's file name."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> tuple[int, str]:
        stem = name.removeprefix("plot_").removesuffix(".py")
        return (ORDER.index(stem) if stem in ORDER else len(ORDER)), name
