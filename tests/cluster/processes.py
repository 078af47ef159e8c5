"""A scheduler and workers as processes of their own: those of the soak study."""

from __future__ import annotations

from support import load_script

soak = load_script("studies/cluster_soak.py")
running = soak.running
