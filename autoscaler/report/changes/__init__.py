"""Advised changes in words."""
