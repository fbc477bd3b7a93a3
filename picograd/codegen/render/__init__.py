"""The renderers: one a source language."""
