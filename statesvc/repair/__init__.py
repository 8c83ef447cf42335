"""Repairs: dead letters, renormalizing, codes that operators teach."""
