"""Tests as the field writes them; their harness is a package that only a finder has."""

import os

import pypto.language as pl
import pytest
import torch
from harness.core.harness import PLATFORMS, DataType, PTOTestCase, TensorSpec


@pl.program
class Add:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self, a: pl.Tensor[[16, 64], pl.FP32], c: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        return pl.store(pl.add(pl.load(a, [0, 0], [16, 64]), 1.0), [0, 0], c)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, a: pl.Tensor[[16, 64], pl.FP32], c: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        return self.kernel(a, c)


class Case(PTOTestCase):
    def __init__(self, wrong, platform=None):
        super().__init__(platform=platform)
        self.wrong = wrong

    def get_name(self):
        return "add"

    def define_tensors(self):
        return [
            TensorSpec("a", [16, 64], DataType.FP32, init_value=torch.randn),
            TensorSpec("c", [16, 64], DataType.FP32, is_output=True),
        ]

    def get_program(self):
        return Add

    def compute_expected(self, tensors, params=None):
        tensors["c"][:] = tensors["a"] + 1 + self.wrong
        tensors["c"][0, :8] = float("nan")  # whatever it is


@pytest.mark.parametrize("platform", PLATFORMS)
def test_right(test_runner, platform):
    result = test_runner.run(Case(0, platform))
    assert result.passed, result.error


def test_wrong(test_runner):
    result = test_runner.run(Case(1))
    assert result.passed, result.error


def test_dies():
    os._exit(3)


def test_behind(test_config):
    assert test_config.platform == "a5sim" and test_config.backend_type.name == "Ascend950"
