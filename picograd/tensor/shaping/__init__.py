"""Shapes: views, padding, joining and splitting."""
