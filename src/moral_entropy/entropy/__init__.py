"""Consensus → entropy parts per item and per domain."""
