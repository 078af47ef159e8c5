"""Votes + Consensus → AuditTable: what every consensus rule did to the labels."""
