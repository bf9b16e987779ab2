"""Pre-trained weights: from a safetensors file, or torchvision's where it is installed."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor, nn

from dualt.errors import FileError, InputError, MissingExtraError
from dualt.files import check_readable

# The classifier at the end has as many rows as its data set has classes.
_HEAD = "fc."


def load_weights(network: nn.Module, source: str | Path) -> None:
    """Load weights into `network`, in place.

    Parameters
    ----------
    network
    source
        A `.safetensors` file with torchvision's names, or `"imagenet"` for torchvision's ResNet-50 weights.
        The last layer is left as it is where the number of classes differs.
    """
    weights = _from_torchvision() if str(source) == "imagenet" else read_weights(Path(source))
    own = network.state_dict()
    usable = {
        name: value
        for name, value in weights.items()
        if not (name.startswith(_HEAD) and name in own and own[name].shape != value.shape)
    }
    for name in own:
        if name in usable and usable[name].shape != own[name].shape:
            got, expected = tuple(usable[name].shape), tuple(own[name].shape)
            raise InputError(f"Expected {name!r} of shape {expected} in {source}, got {got}: another architecture.")
    missing, unexpected = network.load_state_dict(usable, strict=False)
    strange = [name for name in [*missing, *unexpected] if not name.startswith(_HEAD)]
    if strange:
        raise InputError(f"The weights of {source} are of another architecture: {strange[0]!r} does not fit.")


def read_weights(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(check_readable(path))
    except (SafetensorError, OSError) as error:
        if isinstance(error, FileError):
            raise
        expected = "Expected a whole .safetensors file: it is cut short or damaged, or another kind of file."
        raise FileError(f"Cannot read weights from {path}: {error}. {expected}") from error


def _from_torchvision() -> dict[str, Tensor]:
    try:
        from torchvision.models import ResNet50_Weights
    except (ImportError, RuntimeError):  # A torchvision of another torch fails with RuntimeError.
        raise MissingExtraError("ImageNet weights from torchvision (or pass a .safetensors file)", "train") from None
    weights: dict[str, Tensor] = ResNet50_Weights.DEFAULT.get_state_dict(progress=False)
    return weights
