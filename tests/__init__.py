"""Tests, and the real servers that they run against."""
