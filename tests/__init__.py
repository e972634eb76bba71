"""Tests of polyopt; `from tests.x import y` shares helpers."""
