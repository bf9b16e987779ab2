"""Curves for TensorBoard while training goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dualt.errors import FileError, naming_extra
from dualt.nn.training.history import EpochRecord, OnStage

_CURVES = ("loss", "learning_rate", "validation_accuracy", "validation_loss", "test_accuracy", "seconds")


@contextmanager
def tensorboard_log(folder: str | Path | None, then: OnStage | None = None) -> Iterator[OnStage | None]:
    """Yield what a run calls after every epoch: it writes the figures of each stage into `folder`, then calls `then`.

    Epochs count from 1. Without a folder that is `then` itself. Look at the curves with `tensorboard --logdir FOLDER`.
    """
    if folder is None:
        yield then
        return
    with naming_extra("Logging for TensorBoard"):
        import tensorboard  # type: ignore[import-untyped]  # noqa: F401  torch's own error would not name it
        from torch.utils.tensorboard import SummaryWriter

    try:
        writer = SummaryWriter(str(folder))
    except OSError as error:
        raise FileError(f"Cannot log into {folder}: {error.strerror or error}.") from error

    def log(stage: str, record: EpochRecord) -> None:
        for name in _CURVES:
            value = getattr(record, name)
            if value is not None:
                writer.add_scalar(f"{stage}/{name}", value, record.epoch + 1)
        writer.flush()
        if then is not None:
            then(stage, record)

    try:
        yield log
    finally:
        writer.close()
