"""Networks: sizes known from the literature, shapes, seeds, weights from files."""

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from dualt.errors import FileError, InputError, UnknownNameError
from dualt.nn.networks import NETWORKS, build_network
from dualt.nn.storage import load_weights


def count(network):
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize(
    ("name", "shape", "n_classes", "expected"),
    [
        ("mlp", (1, 28, 28), 10, 784 * 128 + 128 + 128 * 128 + 128 + 128 * 10 + 10),
        ("mlp-small", (10,), 2, 10 * 25 + 25 + 25 * 25 + 25 + 25 * 2 + 2),
        ("lenet", (1, 28, 28), 10, 61_706),  # LeCun et al. with full connections
        ("resnet18", (3, 32, 32), 10, 11_173_962),  # the usual CIFAR variant
        ("resnet34", (3, 224, 224), 1000, 21_797_672),  # torchvision
        ("resnet50", (3, 224, 224), 1000, 25_557_032),  # torchvision
    ],
)
def test_number_of_parameters(name, shape, n_classes, expected):
    assert count(build_network(name, shape, n_classes)) == expected


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 28, 28), (3, 32, 32)])
def test_logits_have_the_right_shape(name, shape):
    network = build_network(name, shape, 7, width=0.25).eval()
    with torch.no_grad():
        assert network(torch.zeros(2, *shape)).shape == (2, 7)


def test_the_stem_can_be_chosen():
    x = torch.zeros(2, 3, 32, 32)
    for stem, side in ((None, 32), ("imagenet", 8)):
        network = build_network("resnet18", (3, 32, 32), 10, width=0.25, stem=stem).eval()
        assert network.maxpool(network.conv1(x)).shape == (2, 16, side, side)
        assert network(x).shape == (2, 10)
    torchvision = build_network("resnet34", (3, 32, 32), 1000, stem="imagenet")
    assert count(torchvision) == 21_797_672
    with pytest.raises(UnknownNameError, match="Did you mean 'imagenet'"):
        build_network("resnet18", (3, 32, 32), 10, stem="imagnet")


def test_batch_norm_comes_between_a_layer_and_its_relu():
    network = build_network("mlp-small", (10,), 2, batch_norm=True)
    kinds = [nn.Flatten, *[nn.Linear, nn.BatchNorm1d, nn.ReLU] * 2, nn.Linear]
    assert [type(module) for module in network] == kinds
    # As the authors' network is written down.
    x = torch.randn(64, 10)
    hidden = x
    for number in (1, 4):
        hidden = network[number](hidden)
        hidden = ((hidden - hidden.mean(0)) / (hidden.var(0, unbiased=False) + 1e-5).sqrt()).relu()
    torch.testing.assert_close(network(x), network[7](hidden), rtol=1e-4, atol=1e-5)


def test_a_seed_fixes_the_weights_and_leaves_the_global_generator_alone():
    torch.manual_seed(0)
    before = torch.random.get_rng_state()
    first, again, other = (build_network("mlp", (4,), 3, random_state=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(first[1].weight, again[1].weight)
    assert not torch.equal(first[1].weight, other[1].weight)


def test_bad_requests_are_named():
    with pytest.raises(UnknownNameError, match="Did you mean 'resnet18'"):
        build_network("resnet19", (3, 32, 32), 10)
    with pytest.raises(InputError, match="Expected images"):
        build_network("lenet", (10,), 2)
    with pytest.raises(InputError, match=r"n_classes.*at least 2"):
        build_network("mlp", (4,), 1)


def test_weights_come_from_a_file_but_for_another_head(tmp_path):
    source = build_network("resnet18", (3, 32, 32), 1000, random_state=1, width=0.1)
    path = tmp_path / "weights.safetensors"
    save_file(source.state_dict(), path)
    target = build_network("resnet18", (3, 32, 32), 14, random_state=2, width=0.1)
    head = target.fc.weight.detach().clone()
    load_weights(target, path)
    assert torch.equal(target.conv1.weight, source.conv1.weight)
    assert torch.equal(target.fc.weight, head)


def test_unusable_weights_are_named(tmp_path):
    path = tmp_path / "weights.safetensors"
    own = build_network("resnet18", (3, 32, 32), 10, width=0.1)
    save_file(own.state_dict(), path)
    for name, shape in (("resnet18", (1, 32, 32)), ("resnet34", (3, 32, 32))):
        with pytest.raises(InputError, match="another architecture"):
            load_weights(build_network(name, shape, 10, width=0.1), path)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(FileError, match="truncated, damaged"):
        load_weights(own, path)
    with pytest.raises(FileError, match="No such file"):
        load_weights(own, tmp_path / "none.safetensors")
