"""A scheduler and workers as processes of their own: those of the soak study."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def load():
    spec = importlib.util.spec_from_file_location("cluster_soak", ROOT / "studies" / "cluster_soak.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


soak = load()
running = soak.running
