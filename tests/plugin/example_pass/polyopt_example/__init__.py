"""A plug-in for polyopt that brings the pass `drop-ones`."""
