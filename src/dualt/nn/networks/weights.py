"""Pre-trained weights: from a safetensors file, or torchvision's where it is installed."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor, nn

from dualt.errors import InputError, MissingExtraError
from dualt.nn.tensor_files import read_tensors

# The last layer, whose size depends on the number of classes.
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
    weights = _from_torchvision() if str(source) == "imagenet" else read_tensors(Path(source))[0]
    own = network.state_dict()
    for name in dict.fromkeys((*own, *weights)):
        if name not in own or name not in weights or own[name].shape != weights[name].shape:
            if not name.startswith(_HEAD):
                raise InputError(f"The weights in {source} have another architecture: {name!r} does not fit.")
            weights.pop(name, None)
    network.load_state_dict(weights, strict=False)


def _from_torchvision() -> dict[str, Tensor]:
    try:
        from torchvision.models import ResNet50_Weights
    except (ImportError, RuntimeError):  # A torchvision of another torch fails with RuntimeError.
        raise MissingExtraError("ImageNet weights from torchvision (or pass a .safetensors file)", "train") from None
    weights: dict[str, Tensor] = ResNet50_Weights.DEFAULT.get_state_dict(progress=False)
    return weights
