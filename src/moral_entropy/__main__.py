"""`python -m moral_entropy` is the `moral-entropy` command."""

from __future__ import annotations

import sys

from moral_entropy.cli.main import main

sys.exit(main())
