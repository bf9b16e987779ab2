"""Strategies and data that several tests share."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import hypothesis

hypothesis.settings.register_profile("dualt", deadline=None, max_examples=60, print_blob=True)
hypothesis.settings.load_profile("dualt")
